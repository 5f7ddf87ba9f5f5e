/* SPDX-License-Identifier: Apache-2.0 */
/* Data types and reductions, so that a wrong match is a wrong sum. */
#include "tests/simgpu/nccl/nc.h"

#include <math.h>
#include <string.h>

static const struct {
	size_t size;
	const char *name; /* in kernel names, where signed integers show as unsigned */
} types[] = {
	[ncclInt8] = { 1, "u8" },           [ncclUint8] = { 1, "u8" },
	[ncclInt32] = { 4, "u32" },         [ncclUint32] = { 4, "u32" },
	[ncclInt64] = { 8, "u64" },         [ncclUint64] = { 8, "u64" },
	[ncclFloat16] = { 2, "f16" },       [ncclFloat32] = { 4, "f32" },
	[ncclFloat64] = { 8, "f64" },       [ncclBfloat16] = { 2, "bf16" },
	[ncclFloat8e4m3] = { 1, "f8e4m3" }, [ncclFloat8e5m2] = { 1, "f8e5m2" },
};

size_t nc_type_size(ncclDataType_t t)
{
	return (unsigned)t < ncclNumTypes ? types[t].size : 0;
}

const char *nc_type_name(ncclDataType_t t)
{
	return types[t].name;
}

/* Floats of any width by their exponent and mantissa bits. */
static double float_load(uint32_t v, int exp_bits, int man_bits)
{
	uint32_t man = v & ((1U << man_bits) - 1);
	int exp = (int)(v >> man_bits & ((1U << exp_bits) - 1));
	int bias = (1 << (exp_bits - 1)) - 1;
	double x = exp ? ldexp(1.0 + ldexp(man, -man_bits), exp - bias)
		       : ldexp(man, 1 - bias - man_bits);

	return v >> (exp_bits + man_bits) & 1 ? -x : x;
}

static uint32_t float_store(double x, int exp_bits, int man_bits)
{
	int bias = (1 << (exp_bits - 1)) - 1, e;
	uint32_t sign = signbit(x) ? 1U << (exp_bits + man_bits) : 0;
	double f = frexp(fabs(x), &e); /* in [0.5, 1) */
	int exp = e - 1 + bias;

	if (x == 0.0 || !isfinite(x)) {
		return sign;
	}
	if (exp <= 0) {
		return sign | (uint32_t)lrint(ldexp(fabs(x), bias - 1 + man_bits));
	}
	if (exp >= (1 << exp_bits) - 1) {
		exp = (1 << exp_bits) - 2; /* saturate */
		f = 1.0 - ldexp(0.5, -man_bits - 1);
	}
	/* A mantissa that rounds up to 2 carries into the exponent, as it must. */
	uint32_t man = (uint32_t)lrint(ldexp(2.0 * f - 1.0, man_bits));
	return sign | (((uint32_t)exp << man_bits) + man);
}

static double load(const char *p, ncclDataType_t t)
{
	uint16_t h;
	uint8_t b;
	float f;
	double d;

	switch (t) {
	case ncclFloat16:
	case ncclBfloat16:
		memcpy(&h, p, sizeof h);
		return t == ncclFloat16 ? float_load(h, 5, 10) : float_load(h, 8, 7);
	case ncclFloat8e4m3:
	case ncclFloat8e5m2:
		memcpy(&b, p, sizeof b);
		return t == ncclFloat8e4m3 ? float_load(b, 4, 3) : float_load(b, 5, 2);
	case ncclFloat32:
		memcpy(&f, p, sizeof f);
		return (double)f;
	default:
		memcpy(&d, p, sizeof d);
		return d;
	}
}

static void store(char *p, ncclDataType_t t, double x)
{
	uint16_t h;
	uint8_t b;
	float f = (float)x;

	switch (t) {
	case ncclFloat16:
	case ncclBfloat16:
		h = (uint16_t)(t == ncclFloat16 ? float_store(x, 5, 10) : float_store(x, 8, 7));
		memcpy(p, &h, sizeof h);
		break;
	case ncclFloat8e4m3:
	case ncclFloat8e5m2:
		b = (uint8_t)(t == ncclFloat8e4m3 ? float_store(x, 4, 3) : float_store(x, 5, 2));
		memcpy(p, &b, sizeof b);
		break;
	case ncclFloat32:
		memcpy(p, &f, sizeof f);
		break;
	default:
		memcpy(p, &x, sizeof x);
	}
}

static bool is_integer(ncclDataType_t t)
{
	return t <= ncclUint64;
}

static bool is_signed(ncclDataType_t t)
{
	return t == ncclInt8 || t == ncclInt32 || t == ncclInt64;
}

static int64_t int_load(const char *p, ncclDataType_t t)
{
	uint64_t v = 0;
	size_t n = types[t].size;

	memcpy(&v, p, n);
	if (is_signed(t) && n < 8 && v >> (8 * n - 1)) {
		v |= ~0ULL << (8 * n);
	}
	return (int64_t)v;
}

static int64_t int_combine(int64_t a, int64_t b, bool is_unsigned, ncclRedOp_t op)
{
	bool a_less = is_unsigned ? (uint64_t)a < (uint64_t)b : a < b;

	switch (op) {
	case ncclProd:
		return (int64_t)((uint64_t)a * (uint64_t)b);
	case ncclMax:
		return a_less ? b : a;
	case ncclMin:
		return a_less ? a : b;
	default:
		return (int64_t)((uint64_t)a + (uint64_t)b);
	}
}

static double float_combine(double a, double b, ncclRedOp_t op)
{
	switch (op) {
	case ncclProd:
		return a * b;
	case ncclMax:
		return a > b ? a : b;
	case ncclMin:
		return a < b ? a : b;
	default:
		return a + b;
	}
}

static void sum_f32(char *into, const char *a, const char *b, size_t bytes)
{
	float x, y;

	for (size_t i = 0; i + sizeof x <= bytes; i += sizeof x) {
		memcpy(&x, a + i, sizeof x);
		memcpy(&y, b + i, sizeof y);
		x += y;
		memcpy(into + i, &x, sizeof x);
	}
}

void nc_reduce(char *into, const char *a, const char *b, size_t bytes, ncclDataType_t t,
	       ncclRedOp_t op)
{
	size_t size = types[t].size;

	if (t == ncclFloat32 && (op == ncclSum || op >= ncclAvg)) {
		sum_f32(into, a, b, bytes);
		return;
	}
	for (size_t i = 0; i + size <= bytes; i += size) {
		if (is_integer(t)) {
			int64_t v = int_combine(int_load(a + i, t), int_load(b + i, t),
						!is_signed(t), op);
			memcpy(into + i, &v, size);
		} else {
			store(into + i, t, float_combine(load(a + i, t), load(b + i, t), op));
		}
	}
}

void nc_scale(char *into, const char *src, size_t bytes, ncclDataType_t t, double factor)
{
	size_t size = types[t].size;

	for (size_t i = 0; i + size <= bytes; i += size) {
		if (is_integer(t)) {
			int64_t v = (int64_t)((double)int_load(src + i, t) * factor);
			memcpy(into + i, &v, size);
		} else {
			store(into + i, t, load(src + i, t) * factor);
		}
	}
}

double nc_op_scale(const struct ncclComm *c, ncclRedOp_t op)
{
	int i = (int)op - (int)ncclNumOps;

	return i >= 0 && i < c->n_scales ? c->scales[i] : 1.0;
}
