package token_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"testing"

	"deckle/internal/token"
)

// The oracle makes tokens as the package's documentation has them, step by step and
// without a thought for speed. It shares no code with the package.

var oraclePayload = strings.NewReplacer("%", "%25", "|", "%7C")

func oracleJoin(fields ...string) string {
	for i, f := range fields {
		fields[i] = oraclePayload.Replace(f)
	}
	return strings.Join(fields, "|")
}

func oracleMAC(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// oracleToken is the token of fields of which the one at bucket is the bucket.
func oracleToken(key []byte, literal string, bucket int, fields ...string) string {
	payload := oracleJoin(slices.Clone(fields)...)
	signed := oracleJoin(slices.Insert(slices.Clone(fields), bucket+1, literal)...)
	return b64([]byte(payload)) + "." + b64(oracleMAC(key, signed))
}

func slotFields(s token.Slot, bucket int64, nonce string) []string {
	return []string{
		s.Site, s.URL, s.Slot, s.Creative, strconv.FormatUint(uint64(s.Version), 10),
		strconv.FormatInt(bucket, 10), s.Campaign, s.Advertiser, nonce,
	}
}

func oracleFold(key []byte, s token.Slot, bucket int64, nonce string) string {
	return oracleToken(key, "fold", 5, slotFields(s, bucket, nonce)...)
}

func oracleBeacon(key []byte, e token.Event, b token.Beacon, bucket int64, nonce string) string {
	pad := oracleMAC(key, "price|"+string(e)+"|"+nonce)[:8]
	price := binary.BigEndian.AppendUint64(nil, uint64(b.Price))
	for i := range price {
		price[i] ^= pad[i]
	}
	leases := slices.Clone(b.Leases)
	for i, id := range leases {
		leases[i] = strings.NewReplacer("%", "%25", ",", "%2C").Replace(id)
	}
	dogeared := "0"
	if b.Dogeared {
		dogeared = "1"
	}
	return oracleToken(key, string(e), 5, append(slotFields(b.Slot, bucket, nonce),
		b64(price), b.RequestID, strings.Join(leases, ","), dogeared, b.Category)...)
}

// rawFields are a token's fields as they are in its payload.
func rawFields(t testing.TB, text string) []string {
	t.Helper()
	part, _, _ := strings.Cut(text, ".")
	payload, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(payload), "|")
}

// resigned is a token with a payload as it stands, properly signed.
func resigned(key []byte, literal string, bucket int, payload string) string {
	fields := strings.Split(payload, "|")
	signed := payload + "|" + literal
	if len(fields) > bucket {
		signed = strings.Join(slices.Insert(fields, bucket+1, literal), "|")
	}
	return b64([]byte(payload)) + "." + b64(oracleMAC(key, signed))
}

func base64Decode(part string) (string, error) {
	b, err := base64.RawURLEncoding.DecodeString(part)
	return string(b), err
}

// next is the character whose lowest bit in base64url is the other: the same value
// to a decoder that ignores spare bits.
func next(c byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(alphabet[strings.IndexByte(alphabet, c)^1])
}
