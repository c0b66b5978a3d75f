// Package access decides who may administer Deckle: programs by API keys, people
// by one password and the session that it opens. What it cannot read permits
// nothing.
//
// Keys and password stand in files that are read again when they change, so that
// a leaked one can be withdrawn without a restart.
package access

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
)

// maxKeys bounds a file of API keys.
const maxKeys = 1000

// Keys are the API keys of a file. It may be used concurrently.
type Keys struct {
	file *file[keyList]
}

// A key is what the file says of one: a name for the audit log, and the SHA-256 of
// a secret that only its owner has.
type key struct {
	name string
	sum  [sha256.Size]byte
}

type keyList struct {
	keys []key
	err  error // what is wrong with the lines that are not among them
}

// OpenKeys reads a file of one "name:sha256" a line; empty lines and those that
// begin with # say nothing. Its error names every bad line. An empty path is a
// file without keys.
//
// Later changes are taken as they come. A line that is bad then is logged and is no
// key; the good lines count, and what is no longer there is no key any more. A
// file that cannot be read has no keys.
func OpenKeys(path string, log *slog.Logger) (*Keys, error) {
	k := &Keys{file: &file[keyList]{path: path, parse: parseKeys}}
	if path == "" {
		return k, nil
	}
	list, err := k.file.read()
	if err = errors.Join(err, list.err); err != nil {
		return nil, fmt.Errorf("read API keys: %w", err)
	}
	k.file.changed = func(list keyList, err error) {
		if err = errors.Join(err, list.err); err != nil {
			log.Error("read API keys", "err", err)
			return
		}
		log.Info("API keys read")
	}
	return k, nil
}

// Owner is the name of the key with this secret. The time it takes tells nothing
// about how much of a secret was right.
func (k *Keys) Owner(secret string) (name string, ok bool) {
	if k.file.path == "" {
		return "", false
	}
	list, err := k.file.read()
	if err != nil {
		return "", false
	}
	sum := sha256.Sum256([]byte(secret))
	for i := range list.keys {
		if subtle.ConstantTimeCompare(sum[:], list.keys[i].sum[:]) == 1 {
			name, ok = list.keys[i].name, true
		}
	}
	return name, ok
}

// Err says what is wrong with the file as it is; nil if nothing is.
func (k *Keys) Err() error {
	if k.file.path == "" {
		return nil
	}
	list, err := k.file.read()
	return errors.Join(err, list.err)
}

// Reload reads the file again though it may look unchanged.
func (k *Keys) Reload() { k.file.forget() }

// NewKey makes a secret for name, and the line of the file that lets its owner in.
func NewKey(name string) (secret, line string, err error) {
	if !isName(name) {
		return "", "", fmt.Errorf("%q cannot name a key: use 1 to 64 letters, digits, or ._@-", name)
	}
	secret = "deckle_" + rand.Text()
	sum := sha256.Sum256([]byte(secret))
	return secret, name + ":" + hex.EncodeToString(sum[:]), nil
}

var namePattern = regexp.MustCompile(`^[\pL\pN._@-]{1,64}$`)

// isName reports whether s can stand in the audit log as somebody's name.
func isName(s string) bool { return namePattern.MatchString(s) }

// parseKeys reads what it can. Secrets are not in the file; a line that is wrong
// may still be one that somebody put there by mistake, so none is quoted.
func parseKeys(data []byte) (keyList, error) {
	var list keyList
	bad := func(line int, format string, args ...any) {
		list.err = errors.Join(list.err, fmt.Errorf("line %d: "+format, append([]any{line}, args...)...))
	}
	line := 0
	for text := range strings.Lines(string(bytes.TrimPrefix(data, []byte("\ufeff")))) {
		line++
		text = strings.TrimSpace(text)
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		name, sum, found := strings.Cut(text, ":")
		k := key{name: name}
		switch n, err := hex.Decode(k.sum[:], []byte(sum[:min(len(sum), 2*sha256.Size)])); {
		case !found:
			bad(line, `want "name:sha256"`)
		case !isName(name):
			bad(line, "the name wants 1 to 64 letters, digits, or ._@-")
		case len(sum) != 2*sha256.Size || err != nil || n != sha256.Size:
			bad(line, "after the name stands the SHA-256 of the key, 64 hexadecimal digits; `deckle admin key` makes both")
		case list.has(k):
			bad(line, "this name or this key stands further up already")
		case len(list.keys) == maxKeys:
			bad(line, "more than %d keys", maxKeys)
			return list, nil
		default:
			list.keys = append(list.keys, k)
		}
	}
	return list, nil
}

func (l *keyList) has(k key) bool {
	for _, other := range l.keys {
		if other.name == k.name || other.sum == k.sum {
			return true
		}
	}
	return false
}

// readAll reads at most limit bytes.
func readAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("larger than %d KiB", limit>>10)
	}
	return data, err
}
