/* SPDX-License-Identifier: Apache-2.0 */
/* Runtime API: devices and their properties. */
#include "tests/simgpu/cudart/rt.h"

#include <stdio.h>
#include <string.h>

cudaError_t CUDARTAPI cudaGetDeviceCount(int *count)
{
	sim_init();
	*count = sim_device_count();
	return *count > 0 ? cudaSuccess : sim_rt_error(cudaErrorNoDevice);
}

cudaError_t CUDARTAPI cudaSetDevice(int device)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaSetDevice_v3020);

	sim_init();
	sim_api_enter(&a);
	if (sim_device_set(device) != 0) {
		return sim_rt_leave(&a, cudaErrorInvalidDevice);
	}
	sim_context_current();
	return sim_rt_leave(&a, cudaSuccess);
}

cudaError_t CUDARTAPI cudaGetDevice(int *device)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaGetDevice_v3020);

	sim_rt_enter(&a);
	*device = sim_device_current();
	return sim_rt_leave(&a, cudaSuccess);
}

cudaError_t CUDARTAPI cudaDeviceSynchronize(void)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaDeviceSynchronize_v3020);

	sim_rt_enter(&a);
	sim_sync_stream(NULL, a.corr);
	return sim_rt_leave(&a, cudaSuccess);
}

cudaError_t CUDARTAPI cudaDeviceReset(void)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaDeviceReset_v3020);

	sim_rt_enter(&a);
	sim_stream_wait_all(NULL);
	return sim_rt_leave(&a, cudaSuccess);
}

cudaError_t CUDARTAPI cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
	struct sim_api a = SIM_RUNTIME_CALL(cudaGetDeviceProperties_v12000);
	int domain, bus, slot;

	sim_init();
	sim_api_enter(&a);
	if (!p || device < 0 || device >= sim_device_count()) {
		return sim_rt_leave(&a, cudaErrorInvalidDevice);
	}
	memset(p, 0, sizeof *p);
	snprintf(p->name, sizeof p->name, "%s", sim_device_name());
	sim_device_uuid(device, (uint8_t *)p->uuid.bytes);
	sim_device_pci(device, &domain, &bus, &slot);
	p->pciDomainID = domain;
	p->pciBusID = bus;
	p->pciDeviceID = slot;
	cuDeviceTotalMem(&p->totalGlobalMem, device);
	p->sharedMemPerBlock = 49152;
	p->regsPerBlock = 65536;
	p->warpSize = 32;
	p->maxThreadsPerBlock = 1024;
	p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
	p->maxThreadsDim[2] = 64;
	p->maxGridSize[0] = INT32_MAX;
	p->maxGridSize[1] = p->maxGridSize[2] = 65535;
	p->major = 9;
	p->minor = 0;
	p->multiProcessorCount = 132;
	p->maxThreadsPerMultiProcessor = 2048;
	p->concurrentKernels = 1;
	p->asyncEngineCount = 3;
	p->unifiedAddressing = 1;
	p->streamPrioritiesSupported = 1;
	p->memoryPoolsSupported = 1;
	p->memoryBusWidth = 5120;
	p->l2CacheSize = 50 << 20;
	return sim_rt_leave(&a, cudaSuccess);
}

cudaError_t CUDARTAPI cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
	/* Both enums number the attributes alike. */
	return sim_rt_error(
		(cudaError_t)cuDeviceGetAttribute(value, (CUdevice_attribute)attr, device));
}

cudaError_t CUDARTAPI cudaDeviceGetPCIBusId(char *id, int len, int device)
{
	return sim_rt_error((cudaError_t)cuDeviceGetPCIBusId(id, len, device));
}

cudaError_t CUDARTAPI cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	*least = 0;
	*greatest = -5;
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	*can = device != peer;
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
	(void)flags;
	return peer < sim_device_count() ? cudaSuccess : sim_rt_error(cudaErrorInvalidDevice);
}
