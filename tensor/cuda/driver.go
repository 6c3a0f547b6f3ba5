package cuda

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

// driver is the library, by the addresses of its functions.
type driver struct {
	init, version, deviceCount, deviceGet, deviceName, deviceMemory, deviceAttribute uintptr
	contextRetain, contextRelease, contextSet                                        uintptr
	moduleLoad, moduleFunction, functionSet                                          uintptr
	streamCreate, streamDestroy, streamSync                                          uintptr
	alloc, free, memoryInfo, defaultPool, poolSet, poolTrim                          uintptr
	allocHost, freeHost                                                              uintptr
	copyIn, copyOut, copyRows, fill, fillRows                                        uintptr
	eventCreate, eventRecord, eventSync, eventDestroy, waitEvent                     uintptr
	launch, errorName, errorString                                                   uintptr

	// Of memory that is put under addresses, which a driver may lack.
	reserveAddresses, freeAddresses, createMemory, releaseMemory, mapMemory, unmapMemory, allowAccess uintptr

	// Of graphs, which a driver may lack.
	captureBegin, captureEnd, captureInfo, graphInstantiate, graphLaunch, graphUpdate, graphDestroy, execDestroy uintptr

	// Of memory that others read, which a driver may lack.
	allocShared, freeShared, shareHandle, openHandle, closeHandle, copyCards uintptr

	deviceUUID uintptr // 0: the driver lacks it
}

func (d *driver) symbols() map[string]*uintptr {
	return map[string]*uintptr{
		"cuInit": &d.init, "cuDriverGetVersion": &d.version, "cuDeviceGetCount": &d.deviceCount,
		"cuDeviceGet": &d.deviceGet, "cuDeviceGetName": &d.deviceName, "cuDeviceTotalMem_v2": &d.deviceMemory,
		"cuDeviceGetAttribute": &d.deviceAttribute, "cuDevicePrimaryCtxRetain": &d.contextRetain,
		"cuDevicePrimaryCtxRelease_v2": &d.contextRelease, "cuCtxSetCurrent": &d.contextSet,
		"cuModuleLoadData": &d.moduleLoad, "cuModuleGetFunction": &d.moduleFunction,
		"cuFuncSetAttribute": &d.functionSet,
		"cuStreamCreate":     &d.streamCreate, "cuStreamDestroy_v2": &d.streamDestroy,
		"cuStreamSynchronize": &d.streamSync, "cuMemAllocAsync": &d.alloc, "cuMemFreeAsync": &d.free,
		"cuMemGetInfo_v2": &d.memoryInfo, "cuDeviceGetDefaultMemPool": &d.defaultPool,
		"cuMemPoolSetAttribute": &d.poolSet, "cuMemPoolTrimTo": &d.poolTrim,
		"cuMemAllocHost_v2": &d.allocHost, "cuMemFreeHost": &d.freeHost,
		"cuMemcpyHtoDAsync_v2": &d.copyIn, "cuMemcpyDtoHAsync_v2": &d.copyOut,
		"cuMemcpy2DAsync_v2": &d.copyRows, "cuMemsetD8Async": &d.fill, "cuMemsetD2D8Async": &d.fillRows,
		"cuEventCreate": &d.eventCreate, "cuEventRecord": &d.eventRecord, "cuEventSynchronize": &d.eventSync,
		"cuEventDestroy_v2": &d.eventDestroy, "cuStreamWaitEvent": &d.waitEvent,
		"cuLaunchKernel": &d.launch, "cuGetErrorName": &d.errorName, "cuGetErrorString": &d.errorString,
	}
}

// mapSymbols are those of memory that is put under addresses.
func (d *driver) mapSymbols() map[string]*uintptr {
	return map[string]*uintptr{
		"cuMemAddressReserve": &d.reserveAddresses, "cuMemAddressFree": &d.freeAddresses, "cuMemCreate": &d.createMemory,
		"cuMemRelease": &d.releaseMemory, "cuMemMap": &d.mapMemory, "cuMemUnmap": &d.unmapMemory,
		"cuMemSetAccess": &d.allowAccess,
	}
}

// graphSymbols are those of captured graphs.
func (d *driver) graphSymbols() map[string]*uintptr {
	return map[string]*uintptr{
		"cuStreamBeginCapture_v2": &d.captureBegin, "cuStreamEndCapture": &d.captureEnd,
		"cuStreamGetCaptureInfo_v2": &d.captureInfo, "cuGraphInstantiateWithFlags": &d.graphInstantiate,
		"cuGraphLaunch": &d.graphLaunch, "cuGraphExecKernelNodeSetParams": &d.graphUpdate,
		"cuGraphDestroy": &d.graphDestroy, "cuGraphExecDestroy": &d.execDestroy,
	}
}

// linkSymbols are those of memory that others read.
func (d *driver) linkSymbols() map[string]*uintptr {
	return map[string]*uintptr{
		"cuMemAlloc_v2": &d.allocShared, "cuMemFree_v2": &d.freeShared, "cuMemcpyDtoDAsync_v2": &d.copyCards,
		"cuIpcGetMemHandle": &d.shareHandle, "cuIpcOpenMemHandle_v2": &d.openHandle, "cuIpcCloseMemHandle": &d.closeHandle,
	}
}

// What users are told. Callers branch on ErrUnavailable: there is no card to compute with.
var (
	ErrUnavailable = errors.New("no CUDA device")
	errNoDriver    = fmt.Errorf("%w: the driver's library libcuda.so.1 was not found; install NVIDIA's driver "+
		"(in a container: the NVIDIA runtime), or use --device cpu", ErrUnavailable)
	errHidden = fmt.Errorf("%w: CUDA_VISIBLE_DEVICES is empty, which hides all cards; unset it or name a card, "+
		"or use --device cpu", ErrUnavailable)
	errNoCard = fmt.Errorf("%w: the driver found no card; see what nvidia-smi lists, or use --device cpu",
		ErrUnavailable)
)

// Error is a call of the driver that failed. A device has the first one for its Err.
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
	outOfMemory    = 2
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
	case outOfMemory:
		return "use --dtype bf16, fewer hidden numbers, --mode mini, more workers on more cards, or --device cpu"
	case badPTXVersion, invalidPTX:
		return "update NVIDIA's driver, or use --device cpu"
	case illegalAddress, launchFailed:
		return "this process can use the card no more: start the run again from its checkpoint; if it comes back, " +
			"report it with the command"
	case eccError, deviceLost, systemNotReady:
		return "the card does not answer: see nvidia-smi and the kernel's log, restart the node or use another " +
			"card (CUDA_VISIBLE_DEVICES), and start the run again from its checkpoint"
	}
	return "see nvidia-smi; start the run again from its checkpoint, or use --device cpu"
}

// opened is the library of this process, opened once.
var opened struct {
	once sync.Once
	lib  *driver
	err  error
}

// openDriver is the library, initialised.
func openDriver() (*driver, error) {
	opened.once.Do(func() { opened.lib, opened.err = loadDriver() })
	return opened.lib, opened.err
}

func loadDriver() (*driver, error) {
	if v, set := os.LookupEnv("CUDA_VISIBLE_DEVICES"); set && hidesAll(v) {
		return nil, errHidden
	}
	d := &driver{}
	if err := d.open(driverLibrary()); err != nil {
		return nil, err
	}
	var version int32
	if code := call(d.version, address(&version)); code != 0 {
		return nil, d.failure("cuDriverGetVersion", code)
	}
	if version < leastVersion {
		return nil, fmt.Errorf("%w: found a driver for CUDA %d.%d, want %d.%d or newer; update NVIDIA's driver, or use "+
			"--device cpu", ErrUnavailable, version/1000, version%1000/10, leastVersion/1000, leastVersion%1000/10)
	}
	switch code := call(d.init, 0); code {
	case 0:
		return d, nil
	case noDevice:
		return nil, errNoCard
	default:
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, d.failure("cuInit", code))
	}
}

// hidesAll reports whether a value of CUDA_VISIBLE_DEVICES leaves no card.
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

// failure is a code in words.
func (d *driver) failure(name string, code uintptr) *Error {
	e := &Error{Call: name, Code: int(int32(code)), Name: fmt.Sprintf("error %d", int32(code)), Text: "unknown"}
	e.Advice = adviceOf(e.Code)
	var text uintptr
	if call(d.errorName, code, address(&text)) == 0 && text != 0 {
		e.Name = cString(text)
	}
	if call(d.errorString, code, address(&text)) == 0 && text != 0 {
		e.Text = cString(text)
	}
	return e
}

// address is that of a variable, for a call. Variables whose address is taken here live on the heap,
// since stacks move; the caller keeps them alive until the call is over.
func address[T any](p *T) uintptr {
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

// cString is text of the library's.
func cString(p uintptr) string {
	var b []byte
	for at := *(*unsafe.Pointer)(unsafe.Pointer(&p)); *(*byte)(at) != 0; at = unsafe.Add(at, 1) {
		b = append(b, *(*byte)(at))
	}
	return string(b)
}

// onThread runs f on a thread that has a context, which is a thread's own.
func (d *driver) onThread(context uintptr, f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if code := call(d.contextSet, context); code != 0 {
		return d.failure("cuCtxSetCurrent", code)
	}
	return f()
}
