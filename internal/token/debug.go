package token

import "time"

// DebugWindow is how long a debug token makes batches explain themselves.
const DebugWindow = 10 * time.Minute

const debugLiteral = "debug"

// The places of the fields of a debug token.
const (
	debugSite = iota
	debugBucket
	debugNonce
	debugFields
)

// MintDebug makes a debug token for a site.
func (r *Ring) MintDebug(site string, now time.Time) string {
	g := r.current.signer()
	defer r.current.signers.Put(g)
	g.first(site)
	g.bucket(now)
	g.fresh()
	return g.token(debugLiteral)
}

// Debug believes a debug token that came with a batch of a site, [DebugWindow] before
// and after it was made.
func (v *Verifier) Debug(text, site string, now time.Time) error {
	o, err := open(text, debugFields)
	if err != nil {
		return err
	}
	of, bucket := o.text(debugSite), int64(o.number(debugBucket, 63))
	o.nonce(debugNonce)
	switch {
	case o.bad:
		return &Error{BadPayload}
	case of != site || v.key(of, &o, debugBucket, debugLiteral) == nil:
		return &Error{BadSignature}
	}
	return checkAge(bucket, now, DebugWindow, DebugWindow)
}
