/* SPDX-License-Identifier: Apache-2.0 */
/* Asks an already loaded libcuda and libcudart; loads neither. */
#include "tracer/devices.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "tracer/self.h"

#define DEVICES_MAX 64

struct driver {
	CUresult (*get_version)(int *);
	CUresult (*get_count)(int *);
	CUresult (*get)(CUdevice *, int);
	CUresult (*get_name)(char *, int, CUdevice);
	CUresult (*get_uuid)(CUuuid *, CUdevice);
	CUresult (*get_attribute)(int *, CUdevice_attribute, CUdevice);
	CUresult (*get_memory)(size_t *, CUdevice);
};

static const struct {
	const char *name;
	size_t at; /* members named twice: the later name, where it exists, wins */
} functions[] = {
	{ "cuDriverGetVersion", offsetof(struct driver, get_version) },
	{ "cuDeviceGetCount", offsetof(struct driver, get_count) },
	{ "cuDeviceGet", offsetof(struct driver, get) },
	{ "cuDeviceGetName", offsetof(struct driver, get_name) },
	{ "cuDeviceGetUuid", offsetof(struct driver, get_uuid) },
	{ "cuDeviceGetUuid_v2", offsetof(struct driver, get_uuid) },
	{ "cuDeviceGetAttribute", offsetof(struct driver, get_attribute) },
	{ "cuDeviceTotalMem_v2", offsetof(struct driver, get_memory) },
};

static bool load(struct driver *drv)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	for (size_t i = 0; lib && i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *p = dlsym(lib, functions[i].name);

		if (p)
			memcpy((char *)drv + functions[i].at, &p, sizeof(p));
	}
	return drv->get_version && drv->get_count && drv->get && drv->get_name && drv->get_uuid &&
	       drv->get_attribute && drv->get_memory;
}

/* The kernel module's version, which is what people call the driver's. */
static void driver_version(struct lag_trace_producer *prod, int cuda)
{
	FILE *f = fopen("/proc/driver/nvidia/version", "re");
	char line[256], version[32] = "";
	int at;

	if (f && fgets(line, sizeof(line), f)) {
		for (char *p = line; (p = strchr(p, ' ')) && !version[0]; p++) {
			if (sscanf(p, " %*u.%*u%n", &at) >= 0 && at > 0 && p[1] >= '0' &&
			    p[1] <= '9')
				(void)sscanf(p, "%31s", version);
			at = 0;
		}
	}
	if (f)
		(void)fclose(f);
	if (version[0])
		lag_self_meta(prod, "driver", version);
	(void)snprintf(version, sizeof(version), "%d.%d", cuda / 1000, cuda % 1000 / 10);
	lag_self_meta(prod, "cuda_driver", version);
}

static void runtime_version(struct lag_trace_producer *prod)
{
	static const char *const names[] = { "libcudart.so.13", "libcudart.so.12",
					     "libcudart.so.11.0" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *lib = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
		void *p = lib ? dlsym(lib, "cudaRuntimeGetVersion") : NULL;
		int (*get)(int *), version = 0;
		char text[32];

		memcpy(&get, &p, sizeof(p));
		if (p && !get(&version)) {
			(void)snprintf(text, sizeof(text), "%d.%d", version / 1000,
				       version % 1000 / 10);
			lag_self_meta(prod, "cuda", text);
		}
		if (lib)
			dlclose(lib);
	}
}

static int64_t attribute(const struct driver *drv, CUdevice_attribute which, CUdevice dev)
{
	int v;

	return drv->get_attribute(&v, which, dev) ? LAG_NONE : v;
}

static void device(struct lag_trace_producer *prod, const struct driver *drv, int ordinal)
{
	char name[128] = "", uuid[40];
	struct lag_record rec;
	CUuuid id;
	CUdevice dev;
	size_t memory;

	if (drv->get(&dev, ordinal))
		return;
	lag_record_init(&rec, LAG_REC_device);
	rec.device.device = ordinal;
	if (!drv->get_name(name, sizeof(name), dev))
		rec.device.name = lag_trace_string(prod, name, strnlen(name, sizeof(name)));
	if (!drv->get_uuid(&id, dev)) {
		const unsigned char *b = (const unsigned char *)id.bytes;
		size_t n = 0;

		for (int i = 0; i < 16; i++) {
			const char *dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";

			n += (size_t)snprintf(uuid + n, sizeof(uuid) - n, "%s%02x", dash, b[i]);
		}
		rec.device.uuid = lag_trace_string(prod, uuid, n);
	}
	rec.device.cc_major = attribute(drv, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, dev);
	rec.device.cc_minor = attribute(drv, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, dev);
	rec.device.sm_count = attribute(drv, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, dev);
	if (!drv->get_memory(&memory, dev))
		rec.device.memory_bytes = (int64_t)memory;
	(void)lag_trace_append(prod, &rec);
}

void lag_devices_describe(struct lag_trace_producer *prod)
{
	static bool done;
	struct driver drv = { 0 };
	int n = 0, version = 0;

	if (done)
		return;
	done = true;
	runtime_version(prod);
	if (!load(&drv))
		return;
	if (!drv.get_version(&version))
		driver_version(prod, version);
	if (drv.get_count(&n))
		n = 0;
	for (int i = 0; i < n && i < DEVICES_MAX; i++)
		device(prod, &drv, i);
}
