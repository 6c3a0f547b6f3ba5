// Package driver is the lowest layer of tensor/cuda: the driver's library (libcuda.so.1), which is opened when it is
// first used, its calls and errors, and the GPUs that it finds.
package driver

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"unsafe"
)

// driverNamed is the variable that names another library, as tests do.
const driverNamed = "STARLING_CUDA_DRIVER"

// leastVersion is the driver's that can compile the committed PTX: that of CUDA 11.8.
const leastVersion = 11080

// Driver is the library, by the addresses of its functions.
type Driver struct {
	init, version, deviceCount, deviceGet, deviceName, deviceMemory, deviceAttribute uintptr
	contextRetain, contextRelease, ContextSet                                        uintptr
	moduleLoad, moduleFunction, functionSet                                          uintptr
	StreamCreate, StreamDestroy, StreamSync                                          uintptr
	AllocAsync, FreeAsync, memoryInfo, defaultPool, poolSet, PoolTrim                uintptr
	AllocHost, FreeHost                                                              uintptr
	CopyIn, CopyOut, CopyRows, Fill, FillRows                                        uintptr
	EventCreate, EventRecord, EventSync, EventDestroy, WaitEvent                     uintptr
	LaunchKernel, errorName, errorString                                             uintptr

	// Of memory that is put under addresses, which a driver may lack.
	ReserveAddresses, FreeAddresses, CreateMemory, ReleaseMemory, MapMemory, UnmapMemory, AllowAccess uintptr

	// Of graphs, which a driver may lack.
	CaptureBegin, CaptureEnd, CaptureInfo, GraphInstantiate, GraphLaunch, GraphUpdate, GraphDestroy, ExecDestroy uintptr

	// Of memory that others read, which a driver may lack.
	AllocShared, FreeShared, ShareHandle, OpenHandle, CloseHandle, CopyBetween uintptr

	// 0: the driver lacks it.
	DeviceUUID, StreamFirst uintptr
}

func (d *Driver) symbols() map[string]*uintptr {
	return map[string]*uintptr{
		"cuInit": &d.init, "cuDriverGetVersion": &d.version, "cuDeviceGetCount": &d.deviceCount,
		"cuDeviceGet": &d.deviceGet, "cuDeviceGetName": &d.deviceName, "cuDeviceTotalMem_v2": &d.deviceMemory,
		"cuDeviceGetAttribute": &d.deviceAttribute, "cuDevicePrimaryCtxRetain": &d.contextRetain,
		"cuDevicePrimaryCtxRelease_v2": &d.contextRelease, "cuCtxSetCurrent": &d.ContextSet,
		"cuModuleLoadData": &d.moduleLoad, "cuModuleGetFunction": &d.moduleFunction,
		"cuFuncSetAttribute": &d.functionSet,
		"cuStreamCreate":     &d.StreamCreate, "cuStreamDestroy_v2": &d.StreamDestroy,
		"cuStreamSynchronize": &d.StreamSync, "cuMemAllocAsync": &d.AllocAsync, "cuMemFreeAsync": &d.FreeAsync,
		"cuMemGetInfo_v2": &d.memoryInfo, "cuDeviceGetDefaultMemPool": &d.defaultPool,
		"cuMemPoolSetAttribute": &d.poolSet, "cuMemPoolTrimTo": &d.PoolTrim,
		"cuMemAllocHost_v2": &d.AllocHost, "cuMemFreeHost": &d.FreeHost,
		"cuMemcpyHtoDAsync_v2": &d.CopyIn, "cuMemcpyDtoHAsync_v2": &d.CopyOut,
		"cuMemcpy2DAsync_v2": &d.CopyRows, "cuMemsetD8Async": &d.Fill, "cuMemsetD2D8Async": &d.FillRows,
		"cuEventCreate": &d.EventCreate, "cuEventRecord": &d.EventRecord, "cuEventSynchronize": &d.EventSync,
		"cuEventDestroy_v2": &d.EventDestroy, "cuStreamWaitEvent": &d.WaitEvent,
		"cuLaunchKernel": &d.LaunchKernel, "cuGetErrorName": &d.errorName, "cuGetErrorString": &d.errorString,
	}
}

// mapSymbols are the functions that put memory under addresses.
func (d *Driver) mapSymbols() map[string]*uintptr {
	return map[string]*uintptr{
		"cuMemAddressReserve": &d.ReserveAddresses, "cuMemAddressFree": &d.FreeAddresses, "cuMemCreate": &d.CreateMemory,
		"cuMemRelease": &d.ReleaseMemory, "cuMemMap": &d.MapMemory, "cuMemUnmap": &d.UnmapMemory,
		"cuMemSetAccess": &d.AllowAccess,
	}
}

// graphSymbols are the functions of captured graphs.
func (d *Driver) graphSymbols() map[string]*uintptr {
	return map[string]*uintptr{
		"cuStreamBeginCapture_v2": &d.CaptureBegin, "cuStreamEndCapture": &d.CaptureEnd,
		"cuStreamGetCaptureInfo_v2": &d.CaptureInfo, "cuGraphInstantiateWithFlags": &d.GraphInstantiate,
		"cuGraphLaunch": &d.GraphLaunch, "cuGraphExecKernelNodeSetParams": &d.GraphUpdate,
		"cuGraphDestroy": &d.GraphDestroy, "cuGraphExecDestroy": &d.ExecDestroy,
	}
}

// linkSymbols are the functions for memory that others read.
func (d *Driver) linkSymbols() map[string]*uintptr {
	return map[string]*uintptr{
		"cuMemAlloc_v2": &d.AllocShared, "cuMemFree_v2": &d.FreeShared, "cuMemcpyDtoDAsync_v2": &d.CopyBetween,
		"cuIpcGetMemHandle": &d.ShareHandle, "cuIpcOpenMemHandle_v2": &d.OpenHandle, "cuIpcCloseMemHandle": &d.CloseHandle,
	}
}

// Errors that users read. Callers branch on ErrUnavailable: there is no GPU to compute with.
var (
	ErrUnavailable = errors.New("no CUDA device")
	errNoDriver    = fmt.Errorf("%w: the driver's library libcuda.so.1 was not found; install NVIDIA's driver "+
		"(in a container: the NVIDIA runtime), or use --device cpu", ErrUnavailable)
	errHidden = fmt.Errorf("%w: CUDA_VISIBLE_DEVICES is empty, which hides all GPUs; unset it or name one, "+
		"or use --device cpu", ErrUnavailable)
	errNoGPU = fmt.Errorf("%w: the driver found no GPU; see what nvidia-smi lists, or use --device cpu",
		ErrUnavailable)
)

// Error is a call of the driver that failed. A device's Err is its first one.
type Error struct {
	Call       string
	Code       int
	Name, Text string
	Advice     string
}

func (e *Error) Error() string {
	return fmt.Sprintf("cuda: found %s from %s (%s); %s", e.Name, e.Call, e.Text, e.Advice)
}

// Codes of the driver that have advice of their own.
const (
	OutOfMemory    = 2
	noDevice       = 100
	invalidPTX     = 218
	badPTXVersion  = 222
	ioError        = 14
	illegalAddress = 700
	launchFailed   = 719
	tooManyLaunch  = 701
	eccError       = 214
	deviceLost     = 46 // unavailable
	systemNotReady = 802
)

// adviceOf is what to do about a code.
func adviceOf(code int) string {
	switch code {
	case OutOfMemory:
		return "use --dtype bf16, fewer hidden numbers, --mode mini, more workers on more GPUs, or --device cpu"
	case badPTXVersion, invalidPTX:
		return "update NVIDIA's driver, or use --device cpu"
	case illegalAddress, launchFailed:
		return "this process can use the GPU no more: start the run again from its checkpoint; if it comes back, " +
			"report it with the command"
	case eccError, deviceLost, systemNotReady:
		return "the GPU does not answer: see nvidia-smi and the kernel's log, restart the node or use another " +
			"GPU (CUDA_VISIBLE_DEVICES), and start the run again from its checkpoint"
	}
	return "see nvidia-smi; start the run again from its checkpoint, or use --device cpu"
}

// opened is the library of this process, opened once.
var opened struct {
	once sync.Once
	lib  *Driver
	err  error
}

// openDriver is the library, initialised.
func openDriver() (*Driver, error) {
	opened.once.Do(func() { opened.lib, opened.err = loadDriver() })
	return opened.lib, opened.err
}

func loadDriver() (*Driver, error) {
	if v, set := os.LookupEnv("CUDA_VISIBLE_DEVICES"); set && hidesAll(v) {
		return nil, errHidden
	}
	d := &Driver{}
	if err := d.open(driverLibrary()); err != nil {
		return nil, err
	}
	var version int32
	if code := Call(d.version, Address(&version)); code != 0 {
		return nil, d.Failure("cuDriverGetVersion", code)
	}
	if version < leastVersion {
		return nil, fmt.Errorf("%w: found a driver for CUDA %d.%d, want %d.%d or newer; update NVIDIA's driver, or use "+
			"--device cpu", ErrUnavailable, version/1000, version%1000/10, leastVersion/1000, leastVersion%1000/10)
	}
	switch code := Call(d.init, 0); code {
	case 0:
		return d, nil
	case noDevice:
		return nil, errNoGPU
	default:
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, d.Failure("cuInit", code))
	}
}

// hidesAll reports whether a value of CUDA_VISIBLE_DEVICES leaves no GPU.
func hidesAll(v string) bool {
	v = strings.TrimSpace(v)
	return v == "" || v == "-1" || v == "NoDevFiles"
}

func driverLibrary() string {
	if name := os.Getenv(driverNamed); name != "" {
		return name
	}
	return "libcuda.so.1"
}

// Failure is a code in words.
func (d *Driver) Failure(name string, code uintptr) *Error {
	e := &Error{Call: name, Code: int(int32(code)), Name: fmt.Sprintf("error %d", int32(code)), Text: "unknown"}
	e.Advice = adviceOf(e.Code)
	var text uintptr
	if Call(d.errorName, code, Address(&text)) == 0 && text != 0 {
		e.Name = CString(text)
	}
	if Call(d.errorString, code, Address(&text)) == 0 && text != 0 {
		e.Text = CString(text)
	}
	return e
}

// Address is the address of a variable, for a call. Variables whose address is taken here live on the heap,
// since stacks move; the caller keeps them alive until the call is over.
func Address[T any](p *T) uintptr {
	if never {
		sink = p
	}
	return uintptr(unsafe.Pointer(p))
}

// never is false, which the compiler does not know.
var (
	never bool
	sink  any
)

// CString is text of the library's.
func CString(p uintptr) string {
	var b []byte
	for at := *(*unsafe.Pointer)(unsafe.Pointer(&p)); *(*byte)(at) != 0; at = unsafe.Add(at, 1) {
		b = append(b, *(*byte)(at))
	}
	return string(b)
}

// OnThread runs f on a thread that has a context, which is a thread's own.
func (d *Driver) OnThread(context uintptr, f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if code := Call(d.ContextSet, context); code != 0 {
		return d.Failure("cuCtxSetCurrent", code)
	}
	return f()
}

// Pointer is an address on the GPU, or in the driver's host memory, which Go's collector does not know.
func Pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }
