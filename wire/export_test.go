package wire

// For tests of package wire_test, which can import wiretest.
var (
	OpenTCP     = openTCP
	OpenClasses = openClasses
	OpenMemory  = openMemory
	OpenRings   = openRings
	OpenFakeMPI = openFakeMPI
	NoLeaks     = noLeaks
)
