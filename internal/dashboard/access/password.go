package access

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
)

// MinPassword is how many characters a new password has at least: NIST SP 800-63B-4
// section 3.1.1.2 asks for 15 where nothing stands beside it.
const MinPassword = 15

// maxPassword is in bytes.
const maxPassword = 1024

// A phc is an argon2id hash as the PHC string format has it:
// $argon2id$v=19$m=65536,t=3,p=4$salt$hash.
type phc struct {
	memory  uint32 // KiB
	time    uint32 // passes
	threads uint8
	salt    []byte
	sum     []byte
}

// HashPassword gives the argon2id hash of a password as a PHC string, with the
// parameters that RFC 9106 recommends second: 64 MiB, 3 passes, 4 lanes.
func HashPassword(password []byte) (string, error) {
	switch {
	case !utf8.Valid(password):
		return "", errors.New("the password is not UTF-8")
	case bytes.ContainsAny(password, "\r\n"):
		return "", errors.New("the password has more than one line")
	case utf8.RuneCount(password) < MinPassword:
		return "", fmt.Errorf("the password has less than %d characters", MinPassword)
	case len(password) > maxPassword:
		return "", fmt.Errorf("the password has more than %d bytes", maxPassword)
	}
	h := phc{memory: 64 << 10, time: 3, threads: 4, salt: make([]byte, 16)}
	_, _ = rand.Read(h.salt) // never fails
	h.sum = h.of(password, 32)
	return h.String(), nil
}

func (h *phc) of(password []byte, n int) []byte {
	return argon2.IDKey(password, h.salt, h.time, h.memory, h.threads, uint32(n))
}

// matches takes as long for every password.
func (h *phc) matches(password []byte) bool {
	return subtle.ConstantTimeCompare(h.of(password, len(h.sum)), h.sum) == 1
}

func (h *phc) String() string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.memory, h.time, h.threads,
		b64.EncodeToString(h.salt), b64.EncodeToString(h.sum))
}

// parsePHC reads a PHC string. Its parameters are bounded: below, a hash would be
// guessed too fast; above, a log-in would take the machine.
func parsePHC(data []byte) (*phc, error) {
	parts := strings.Split(strings.TrimSpace(string(data)), "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" {
		return nil, errors.New("not an argon2id hash; `deckle admin password` makes one")
	}
	if parts[2] != "v="+strconv.Itoa(argon2.Version) {
		return nil, fmt.Errorf("argon2 of another version than %d", argon2.Version)
	}
	var h phc
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.memory, &h.time, &h.threads); err != nil {
		return nil, errors.New("the parameters are not m=…,t=…,p=…")
	}
	var errSalt, errSum error
	h.salt, errSalt = base64.RawStdEncoding.DecodeString(parts[4])
	h.sum, errSum = base64.RawStdEncoding.DecodeString(parts[5])
	switch {
	case errSalt != nil || errSum != nil || len(h.salt) < 8 || len(h.salt) > 64 || len(h.sum) < 16 || len(h.sum) > 64:
		return nil, errors.New("salt or hash is not base64 of the right length")
	case h.memory < 19<<10 || h.memory > 1<<20:
		return nil, fmt.Errorf("m=%d is not within 19456 and 1048576 (KiB)", h.memory)
	case h.time < 1 || h.time > 16 || h.threads < 1 || h.threads > 16:
		return nil, errors.New("t and p are not within 1 and 16")
	case h.String() != strings.TrimSpace(string(data)):
		return nil, errors.New("more than an argon2id hash")
	}
	return &h, nil
}
