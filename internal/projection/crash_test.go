package projection_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckle/internal/projection"
)

// victimFile is the report.db that the test binary folds into instead of testing.
const victimFile = "DECKLE_TEST_REPORT"

func TestMain(m *testing.M) {
	if path := os.Getenv(victimFile); path != "" {
		if err := victim(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// victim folds what is left to fold, in transactions of one size or another, and says
// when it begins and when it has come to the end.
func victim(path string) error {
	h := busyDay()
	tables, err := projection.OpenTables(context.Background(), path, projection.Config{}, quiet, projection.Report{})
	if err != nil {
		return err
	}
	tables.SetBatch(1 + rand.IntN(300))
	fmt.Println("open")
	if err := tables.FoldTo(context.Background(), h, h.last()); err != nil {
		return err
	}
	fmt.Println("done")
	return tables.Close()
}

func busyDay() *history { return traffic(6_000, 11) }

// Processes are killed while they fold. Nothing counts twice and nothing is left out.
// DECKLE_SLOW=1 kills until it has hit 50 of them.
func TestKilledFoldsLoseNothing(t *testing.T) {
	t.Parallel()
	kills := 3
	if os.Getenv("DECKLE_SLOW") != "" {
		kills = 50
	}
	dir, h := t.TempDir(), busyDay()
	once := filepath.Join(dir, "once.db")
	if err := open(t, once).FoldTo(t.Context(), h, h.last()); err != nil {
		t.Fatal(err)
	}
	want := dump(t, once)
	path := filepath.Join(dir, "report.db")
	for killed, folded := 0, 0; ; {
		after := time.Duration(rand.IntN(60)) * time.Millisecond
		if killed == kills {
			after = time.Hour
		}
		if !killVictim(t, path, after) {
			killed++
			continue
		}
		if diff := cmp.Diff(want, dump(t, path)); diff != "" {
			t.Fatalf("after %d kills (-folded at once +killed):\n%s", killed, diff)
		}
		if killed == kills {
			return
		}
		folded++
		path = filepath.Join(dir, fmt.Sprintf("report-%d.db", folded)) // from the start again
	}
}

// killVictim kills a victim some time after it has begun, and reports whether it was
// done before.
func killVictim(t *testing.T, path string, after time.Duration) (done bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), victimFile+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	begun := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch lines.Text() {
		case "open":
			begun = true
			defer time.AfterFunc(after, func() { _ = cmd.Process.Kill() }).Stop()
		case "done":
			done = true
		}
	}
	_ = cmd.Wait()
	if !begun {
		t.Fatal("the victim did not even open report.db")
	}
	return done
}
