package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// The last good version of a site's template is the file as it was, below one
// line with its hash. It is replaced by a rename: after a crash the old one or
// the new one is there, and whole.
const lastGoodHeader = "# The last version of this file that was valid. sha256:"

var errNoLastGood = errors.New("no last good version")

// hashOf is the SHA-256 of a file's content in hexadecimal.
func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// readLastGood reads what writeLastGood has written. Its errors wrap
// errNoLastGood when there is none.
func readLastGood(path string) ([]byte, error) {
	file, err := readFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w at %s", errNoLastGood, path)
	}
	if err != nil {
		return nil, err
	}
	first, data, _ := bytes.Cut(file, []byte("\n"))
	if string(first) != lastGoodHeader+hashOf(data) {
		return nil, fmt.Errorf("read last good version: %s does not have the hash it names", path)
	}
	return data, nil
}

// writeLastGood is durable when it returns nil.
func writeLastGood(path string, data []byte) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("keep last good version: %w", err)
	}
	f, err := os.CreateTemp(folder, filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("keep last good version: %w", err)
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = fmt.Fprintf(f, "%s%s\n%s", lastGoodHeader, hashOf(data), data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("keep last good version: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("keep last good version: %w", err)
	}
	return syncFolder(folder)
}

// syncFolder makes a rename within a folder durable.
func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return fmt.Errorf("keep last good version: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("keep last good version: %w", err)
	}
	return nil
}
