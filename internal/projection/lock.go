package projection

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"deckle/internal/store"
)

// lock makes report.db this process's, until the returned file is closed or the
// process ends, however that ends. Where another process has it, that is
// [store.ErrInUse]. The lock's own file stays: to remove it would let a third process
// lock another one of the same name.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", path, store.ErrInUse)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}
