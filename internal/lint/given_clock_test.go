package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// clockRooms take their time from a wire.Clock that they were given, so that a run in a
// simulator reports virtual seconds.
var clockRooms = []string{"wire", "wire/paths", "collective", "cluster", "exchange", "cost", "train", "train/full",
	"train/site", "train/batch", "train/mini", "innet"}

// realClockFile is where the host is asked for the time.
const realClockFile = "wire/clock_real.go"

// hostTime is what asks the host for the time, by package.
var hostTime = map[string][]string{
	"time":    {"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Sleep", "Tick"},
	"context": {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause"},
}

// TestClockIsGiven: no code of these rooms, but their tests, reads the host's clock itself.
func TestClockIsGiven(t *testing.T) {
	files := token.NewFileSet()
	sources(t, func(path string) {
		room := roomOf(path[:max(strings.LastIndex(path, "/"), 0)])
		if !slices.Contains(clockRooms, room) || strings.HasSuffix(path, "_test.go") || path == realClockFile {
			return
		}
		f, err := parser.ParseFile(files, "../../"+path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				pkg, _ := sel.X.(*ast.Ident)
				if pkg != nil && pkg.Obj == nil && slices.Contains(hostTime[pkg.Name], sel.Sel.Name) {
					t.Errorf("%v: %s.%s: use the wire.Clock that was given", files.Position(n.Pos()), pkg.Name,
						sel.Sel.Name)
				}
			}
			return true
		})
	})
}
