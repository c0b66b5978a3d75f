package store_test

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"deckle/internal/store"
)

// slow skips what only the slow suite runs.
func slow(t *testing.T) {
	t.Helper()
	if os.Getenv("DECKLE_SLOW") == "" {
		t.Skip("only with DECKLE_SLOW=1")
	}
}

// TestKilled kills the process fifty times under load. A retry tells each id that
// was not acknowledged again, as a client would.
func TestKilled(t *testing.T) {
	rounds := 3
	if os.Getenv("DECKLE_SLOW") != "" {
		rounds = 50
	}
	t.Parallel()
	dir := t.TempDir()
	acked := map[store.Seq]string{}
	random := rand.New(rand.NewPCG(1, 2))
	for round := range rounds {
		h := startHelper(t, dir, fmt.Sprint("r", round), 16)
		kill := time.AfterFunc(time.Duration(20+random.IntN(150))*time.Millisecond, func() { _ = h.Process.Kill() })
		got := h.acks(t, 0)
		kill.Stop()
		_ = h.Wait()
		record(t, acked, got)

		st := open(t, store.Config{DataDir: dir})
		told := retry(t, st, got)
		record(t, acked, told)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	verify(t, open(t, store.Config{DataDir: dir}), acked)
	t.Logf("killed %d times, %d messages acknowledged, none lost, none double", rounds, len(acked))
}

// record adds what was acknowledged. No place is given twice.
func record(t *testing.T, acked map[store.Seq]string, got map[string]ack) {
	t.Helper()
	for id, a := range got {
		seq := a.seq
		if other, ok := acked[seq]; ok && other != id {
			t.Fatalf("place %d was given to %s and to %s", seq, other, id)
		}
		acked[seq] = id
	}
}

// retry appends again what each writer may have been waiting for when it was
// killed: the id after its last acknowledged one.
func retry(t *testing.T, st *store.Store, got map[string]ack) map[string]ack {
	t.Helper()
	last := map[string]int{}
	for id := range got {
		writer, n := splitID(t, id)
		last[writer] = max(last[writer], n)
	}
	told := map[string]ack{}
	for writer, n := range last {
		id := fmt.Sprintf("%s-%d", writer, n+1)
		seq, err := st.Journal().Append(t.Context(), id, message(id))
		if err != nil {
			t.Fatal(err)
		}
		told[id] = ack{seq: seq}
	}
	return told
}

func splitID(t *testing.T, id string) (writer string, n int) {
	t.Helper()
	i := strings.LastIndexByte(id, '-')
	if _, err := fmt.Sscan(id[i+1:], &n); err != nil {
		t.Fatal(err)
	}
	return id[:i], n
}

// shutdownExt4 is EXT4_IOC_SHUTDOWN: the file system stops at once, and with
// noLogFlush what is neither on the disk nor in a committed journal is gone, as
// when the power goes.
const (
	shutdownExt4 = 0x8004587d
	noLogFlush   = 2
)

// TestPowerCut cuts the power of a disk under load, as near as a machine can that
// goes on: an ext4 on a loop device is shut down without flushing anything, and
// mounted again.
func TestPowerCut(t *testing.T) {
	slow(t)
	if os.Getuid() != 0 {
		t.Fatal("a disk can only be made as root")
	}
	total := 0
	for round := range 10 {
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) { total += cutOnce(t, max(1, 100*(round-4))) })
	}
	t.Logf("power cut 10 times, %d messages acknowledged, none lost", total)
}

// cutOnce cuts the power after so many acknowledgements, and returns how many
// there were in the end.
func cutOnce(t *testing.T, after int) int {
	t.Helper()
	dir, image := t.TempDir(), filepath.Join(t.TempDir(), "disk")
	run(t, "truncate", "-s", "256M", image)
	run(t, "mkfs.ext4", "-q", "-F", image)
	run(t, "mount", "-o", "loop", image, dir)
	t.Cleanup(func() { run(t, "umount", dir) })
	h := startHelper(t, dir, "p", 16)
	acked := h.acks(t, after)
	cutAt := time.Now()
	cutPower(t, dir)
	h.stdin.Close()
	maps.Copy(acked, h.acks(t, 0))
	_ = h.Wait()
	// This process goes on after the cut, as none would. A sync that the cut has
	// overtaken may come back without an error (jbd2 finds its transaction ended, not
	// that it was aborted): what is told by then would have been told to nobody.
	maps.DeleteFunc(acked, func(_ string, a ack) bool { return a.at.After(cutAt) })
	if len(acked) < after {
		t.Fatalf("%d acknowledgements before the cut, want %d", len(acked), after)
	}
	run(t, "umount", dir)
	run(t, "mount", "-o", "loop", image, dir)

	byPlace := map[store.Seq]string{}
	record(t, byPlace, acked)
	st, err := store.Open(t.Context(), store.Config{DataDir: dir}, discard)
	if err != nil {
		t.Fatal(err)
	}
	verify(t, st, byPlace)
	if err := st.Close(); err != nil {
		t.Error(err)
	}
	return len(acked)
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

func cutPower(t *testing.T, dir string) {
	t.Helper()
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	how := uint32(noLogFlush)
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, d.Fd(), shutdownExt4, uintptr(unsafe.Pointer(&how))); errno != 0 {
		t.Fatal("shut the file system down: ", errno)
	}
}

// TestSyncBeforeAcknowledgement traces the system calls of a process that appends
// one message after the other: between a write to the journal's block and the line
// that tells of its acknowledgement there is a sync of that file.
func TestSyncBeforeAcknowledgement(t *testing.T) {
	slow(t)
	trace := filepath.Join(t.TempDir(), "trace")
	dir := t.TempDir()
	h := startHelper(t, dir, "s", 1, "strace", "-f", "-y", "-s", "24", "-e", "trace=fsync,fdatasync,write,pwrite64", "-o", trace)
	const n = 50
	if got := len(h.acks(t, n)); got != n {
		t.Fatalf("%d acknowledgements", got)
	}
	h.stdin.Close()
	h.acks(t, 0)
	if err := h.Wait(); err != nil {
		t.Fatal(err)
	}
	syncs, acks := judgeTrace(t, trace)
	if acks < n {
		t.Errorf("the trace has %d acknowledgements, want at least %d", acks, n)
	}
	t.Logf("%d acknowledgements, each after one of %d syncs of what had been written", acks, syncs)
}

var (
	writesBlock = regexp.MustCompile(`(?:pwrite64|write)\(\d+<[^>]*/streams/journal/msgs/\d+\.blk>`)
	syncsBlock  = regexp.MustCompile(`(?:fsync|fdatasync)\(\d+<[^>]*/streams/journal/msgs/\d+\.blk>`)
	tellsAck    = regexp.MustCompile(`write\(1<[^>]*>, "ack `)
	resumed     = regexp.MustCompile(`^(\d+) +<\.\.\. (?:fsync|fdatasync) resumed>.*= 0`)
	syncDone    = regexp.MustCompile(`= 0$`)
)

// judgeTrace fails if an acknowledgement is told while something written to the
// block is not synced.
func judgeTrace(t *testing.T, path string) (syncs, acks int) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	written, synced := 0, 0     // writes to the block; those that a finished sync covers
	syncing := map[string]int{} // by thread: writes before a sync that is under way
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := lines.Text()
		thread, _, _ := strings.Cut(line, " ")
		switch {
		case writesBlock.MatchString(line):
			written++
		case syncsBlock.MatchString(line) && syncDone.MatchString(line):
			synced, syncs = written, syncs+1
		case syncsBlock.MatchString(line):
			syncing[thread] = written
		case resumed.MatchString(line):
			if before, ok := syncing[thread]; ok {
				synced, syncs = max(synced, before), syncs+1
				delete(syncing, thread)
			}
		case tellsAck.MatchString(line):
			acks++
			if acks > synced {
				t.Errorf("acknowledgement %d is told after %d writes, of which %d are synced", acks, written, synced)
			}
		}
	}
	if written == 0 || syncs == 0 {
		t.Fatal(errors.New("the trace has no writes or no syncs"))
	}
	return syncs, acks
}
