/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses a libcupti: the one the program has already loaded, else the one that belongs to its
 * libcudart, else the loader's, else the toolkit's; never newer than the driver. Loading another copy
 * first would make the program's own libraries use ours. Runs once, inside cuInit. */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "tracer/config.h"
#include "tracer/cupti_api.h"

static const struct {
	const char *soname;
	int major;
} names[] = {

#define LAG_CUPTI_NAME(soname, major) { soname, major },
#include "schema/libs.def"
};

static const char *const beside[] = {
#define LAG_CUPTI_FOLDER(folder) folder,
#include "schema/libs.def"
};

static const char *const below[] = {
#define LAG_CUDA_FOLDER(folder) folder,
#include "schema/libs.def"
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *name;
	size_t at;
	bool needed;
} functions[] = {
	{ "cuptiGetVersion", offsetof(struct lag_cupti_api, get_version), true },
	{ "cuptiGetTimestamp", offsetof(struct lag_cupti_api, get_timestamp), true },
	{ "cuptiGetResultString", offsetof(struct lag_cupti_api, get_result_string), false },
	{ "cuptiGetCallbackName", offsetof(struct lag_cupti_api, get_callback_name), false },
	{ "cuptiSubscribe", offsetof(struct lag_cupti_api, subscribe), true },
	{ "cuptiEnableCallback", offsetof(struct lag_cupti_api, enable_callback), true },
	{ "cuptiActivityRegisterCallbacks", offsetof(struct lag_cupti_api, register_callbacks),
	  true },
	{ "cuptiActivityEnable", offsetof(struct lag_cupti_api, enable), true },
	{ "cuptiActivityEnableRuntimeApi", offsetof(struct lag_cupti_api, enable_runtime_api),
	  false },
	{ "cuptiActivityEnableDriverApi", offsetof(struct lag_cupti_api, enable_driver_api),
	  false },
	{ "cuptiActivityEnableAllSyncRecords", offsetof(struct lag_cupti_api, enable_all_sync),
	  false },
	{ "cuptiSetThreadIdType", offsetof(struct lag_cupti_api, set_thread_id_type), false },
	{ "cuptiActivityFlushAll", offsetof(struct lag_cupti_api, flush_all), true },
	{ "cuptiActivityGetNextRecord", offsetof(struct lag_cupti_api, get_next_record), true },
	{ "cuptiActivityGetNumDroppedRecords", offsetof(struct lag_cupti_api, get_dropped), false },
	{ "cuptiActivityPushExternalCorrelationId", offsetof(struct lag_cupti_api, push_id),
	  false },
	{ "cuptiActivityPopExternalCorrelationId", offsetof(struct lag_cupti_api, pop_id), false },
	{ "cuptiGetStreamIdEx", offsetof(struct lag_cupti_api, get_stream_id), false },
};

static int driver_major(void)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	void *p = cuda ? dlsym(cuda, "cuDriverGetVersion") : NULL;
	int (*get)(int *);
	int version = 0;

	memcpy(&get, &p, sizeof(p));
	if (p && get(&version))
		version = 0;
	if (cuda)
		dlclose(cuda);
	return version ? version / 1000 : INT_MAX;
}

static int find_cudart(struct dl_phdr_info *info, size_t size, void *out)
{
	const char *name = strstr(info->dlpi_name, "/libcudart.so");

	(void)size;
	if (!name || (size_t)(name - info->dlpi_name) >= PATH_MAX)
		return 0;
	memcpy(out, info->dlpi_name, (size_t)(name - info->dlpi_name));
	((char *)out)[name - info->dlpi_name] = 0;
	return 1;
}

static void *try_folder(const char *base, const char *folder, const char *soname)
{
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s%s/%s", base, folder, soname) >= sizeof(path))
		return NULL;
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *try_toolkits(const char *soname)
{
	const char *const bases[] = { getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda" };

	for (size_t b = 0; b < COUNT(bases); b++) {
		for (size_t i = 0; bases[b] && i < COUNT(below); i++) {
			char folder[64];
			void *lib;

			(void)snprintf(folder, sizeof(folder), "/%s", below[i]);
			lib = try_folder(bases[b], folder, soname);
			if (lib)
				return lib;
		}
	}
	return NULL;
}

static void *find_library(const char **why)
{
	char cudart[PATH_MAX] = "";
	int major = driver_major();
	void *lib = NULL;

	*why = "already loaded by the program";
	for (size_t i = 0; i < COUNT(names) && !lib; i++)
		lib = dlopen(names[i].soname, RTLD_NOW | RTLD_NOLOAD);
	if (lib)
		return lib;
	(void)dl_iterate_phdr(find_cudart, cudart);
	for (size_t i = 0; i < COUNT(names); i++) {
		if (names[i].major > major)
			continue;
		*why = "beside the program's libcudart";
		for (size_t k = 0; cudart[0] && k < COUNT(beside) && !lib; k++)
			lib = try_folder(cudart, beside[k], names[i].soname);
		if (lib)
			return lib;
	}
	for (size_t i = 0; i < COUNT(names); i++) {
		if (names[i].major > major)
			continue;
		*why = "found by the dynamic loader";
		lib = dlopen(names[i].soname, RTLD_NOW | RTLD_LOCAL);
		if (lib)
			return lib;
		*why = "found in the CUDA toolkit";
		lib = try_toolkits(names[i].soname);
		if (lib)
			return lib;
	}
	*why = "no libcupti that fits the driver was found";
	return NULL;
}

bool lag_cupti_load(struct lag_cupti_api *api, const char **why)
{
	void *lib = find_library(&api->why);
	Dl_info info;

	if (!lib) {
		*why = api->why;
		return false;
	}
	for (size_t i = 0; i < COUNT(functions); i++) {
		void *p = dlsym(lib, functions[i].name);

		if (!p && functions[i].needed) {
			*why = "libcupti lacks functions that are needed";
			return false;
		}
		memcpy((char *)api + functions[i].at, &p, sizeof(p));
	}
	if (dladdr(dlsym(lib, "cuptiGetVersion"), &info) && info.dli_fname)
		(void)snprintf(api->path, sizeof(api->path), "%s", info.dli_fname);
	if (api->get_version(&api->version))
		api->version = 0;
	return true;
}

size_t lag_cupti_stride(const struct lag_cupti_api *api, CUpti_ActivityKind kind)
{
	/* Every 8-byte slot looks like the beginning of a record of this kind, so wherever the
	 * iterator lands tells how far it went. */
	uint64_t slots[128];
	CUpti_Activity *rec = NULL, *first;

	for (size_t i = 0; i < COUNT(slots); i++)
		slots[i] = (uint64_t)kind;
	if (api->get_next_record((uint8_t *)slots, sizeof(slots), &rec) || !rec)
		return 0;
	first = rec;
	if (api->get_next_record((uint8_t *)slots, sizeof(slots), &rec) || rec <= first)
		return 0;
	return (size_t)((uint8_t *)rec - (uint8_t *)first);
}
