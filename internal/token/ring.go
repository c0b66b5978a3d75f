package token

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"strconv"
	"sync"
	"time"
)

// A Ring signs with a publisher's current key and verifies with its previous one as
// well. It is made once from its secrets, never changes, and is used by any number of
// goroutines.
type Ring struct {
	current  *key
	previous *key // nil: none
}

// minSecret is the size of a secret below which HMAC-SHA256 gives less than its due
// (RFC 2104 section 3).
const minSecret = sha256.Size

// NewRing is the ring of two secrets of at least 32 bytes, the second of which may be
// empty. It panics on a shorter one: with that anybody could make tokens.
func NewRing(current, previous []byte) *Ring {
	r := &Ring{current: newKey(current)}
	if len(previous) > 0 {
		r.previous = newKey(previous)
	}
	return r
}

// A key is a secret with signers to reuse: most of an HMAC's cost is its start.
type key struct{ signers sync.Pool }

func newKey(secret []byte) *key {
	if len(secret) < minSecret {
		panic("token: secret is shorter than 32 bytes")
	}
	secret = append([]byte(nil), secret...)
	return &key{sync.Pool{New: func() any {
		return &signer{mac: hmac.New(sha256.New, secret)}
	}}}
}

func (k *key) signer() *signer { return k.signers.Get().(*signer) }

// A signer is a key at work on one token. Its buffers belong to the pool again when
// the token is done.
type signer struct {
	mac     hash.Hash
	payload []byte // of a token that is being made
	cut     int    // where in the payload the bucket ends
	list    []byte // of lease ids, within the field
	text    []byte // what a mac is over, then the token
	sum     []byte
	nonce   [nonceBytes]byte
}

const nonceBytes = 16

var (
	encoding  = base64.RawURLEncoding.Strict()
	macText   = encoding.EncodedLen(sha256.Size)
	nonceText = encoding.EncodedLen(nonceBytes)
)

// first begins a payload.
func (g *signer) first(s string) { g.payload = appendEscaped(g.payload[:0], s, '|') }

// field adds one to the payload.
func (g *signer) field(s string) { g.payload = appendEscaped(append(g.payload, '|'), s, '|') }

func (g *signer) number(n uint64) {
	g.payload = strconv.AppendUint(append(g.payload, '|'), n, 10)
}

// bucket adds the field after which the mac has the literal.
func (g *signer) bucket(now time.Time) {
	g.payload = strconv.AppendInt(append(g.payload, '|'), bucketAt(now), 10)
	g.cut = len(g.payload)
}

// fresh adds a nonce.
func (g *signer) fresh() {
	rand.Read(g.nonce[:]) // never fails
	g.payload = encoding.AppendEncode(append(g.payload, '|'), g.nonce[:])
}

// token signs the payload for what the literal says.
func (g *signer) token(literal string) string {
	sum := sign(g, g.payload, g.cut, literal)
	g.text = encoding.AppendEncode(g.text[:0], g.payload)
	g.text = encoding.AppendEncode(append(g.text, '.'), sum)
	return string(g.text)
}

// sign is the mac of a payload, good until the next call.
func sign[T string | []byte](g *signer, payload T, cut int, literal string) []byte {
	g.text = append(g.text[:0], payload[:cut]...)
	g.text = append(append(g.text, '|'), literal...)
	g.text = append(g.text, payload[cut:]...)
	return g.hmac()
}

// hmac is that of the text, good until the next call.
func (g *signer) hmac() []byte {
	g.mac.Reset()
	g.mac.Write(g.text)
	g.sum = g.mac.Sum(g.sum[:0])
	return g.sum
}

// signed is the key of the ring that made a mac, in the form of the wire, or nil.
func (r *Ring) signed(o *opened, cut int, literal string) *key {
	var mac [sha256.Size]byte
	if len(o.mac) != macText {
		return nil
	}
	if n, err := encoding.Decode(mac[:], []byte(o.mac)); err != nil || n != len(mac) {
		return nil // a line break makes it shorter
	}
	for _, k := range [...]*key{r.current, r.previous} {
		if k != nil && k.signed(mac[:], o.payload, cut, literal) {
			return k
		}
	}
	return nil
}

func (k *key) signed(mac []byte, payload string, cut int, literal string) bool {
	g := k.signer()
	defer k.signers.Put(g)
	return hmac.Equal(mac, sign(g, payload, cut, literal)) // constant time
}
