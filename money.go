package deckle

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Money is an amount in micros (millionths) of an account's currency.
type Money int64

// CPM is a price for a thousand impressions, in micros of a currency. It is not
// [Money], so that a price is never booked as spend.
type CPM int64

// Imp is the price of one impression. It rounds down: nobody is charged more
// than was agreed.
func (p CPM) Imp() Money { return Money(p / 1000) }

// String gives the price as a decimal number without trailing zeros: "2.5".
func (p CPM) String() string {
	sign := ""
	u := uint64(p)
	if p < 0 {
		sign, u = "-", -u
	}
	whole, micros := u/1e6, u%1e6
	if micros == 0 {
		return sign + strconv.FormatUint(whole, 10)
	}
	return fmt.Sprintf("%s%d.%s", sign, whole, strings.TrimRight(fmt.Sprintf("%06d", micros), "0"))
}

// MaxCPM bounds every price that is read: a million units of a currency for a
// thousand impressions. What is above is an error of its sender.
const MaxCPM CPM = 1_000_000 * 1e6

// ErrPrice is wrapped by every error of a price that cannot be read.
var ErrPrice = errors.New("not a price")

// ParseCPM reads a decimal number ("2.5", "1.4960000000000002", "15e-1") as a
// price, multiplies it exactly by factors (a currency rate, an adjustment), and
// rounds once, to the nearest micro, halves away from zero. Prices beyond
// ±[MaxCPM] and texts of more than 64 bytes are errors that wrap [ErrPrice].
func ParseCPM(text string, factors ...*big.Rat) (CPM, error) {
	p, err := ParseDecimal(text)
	if err != nil {
		return 0, err
	}
	for _, f := range factors {
		p.Mul(p, f)
	}
	p.Mul(p, microsPerUnit)
	micros := roundHalfAway(p)
	if !micros.IsInt64() || CPM(micros.Int64()) > MaxCPM || CPM(micros.Int64()) < -MaxCPM {
		return 0, fmt.Errorf("price %q is out of range: %w", text, ErrPrice)
	}
	return CPM(micros.Int64()), nil
}

// ParseDecimal reads a JSON number exactly. Its exponent may be −40 to 20 and
// its text 64 bytes: enough for every price, and no stranger can make us compute
// with a number of a million digits. Its errors wrap [ErrPrice].
func ParseDecimal(text string) (*big.Rat, error) {
	if !isDecimal(text) {
		return nil, fmt.Errorf("price %.64q is not a decimal number: %w", text, ErrPrice)
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		if e, err := strconv.Atoi(text[i+1:]); err != nil || e < -40 || e > 20 {
			return nil, fmt.Errorf("price %q is out of range: %w", text, ErrPrice)
		}
	}
	p, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, fmt.Errorf("price %q is not a decimal number: %w", text, ErrPrice)
	}
	return p, nil
}

var microsPerUnit = big.NewRat(1e6, 1)

// roundHalfAway is the integer nearest to r, halves away from zero.
func roundHalfAway(r *big.Rat) *big.Int {
	n := new(big.Int).Lsh(new(big.Int).Abs(r.Num()), 1) // floor((2|n|+d) / 2d)
	d := new(big.Int).Lsh(r.Denom(), 1)
	n.Add(n, r.Denom()).Quo(n, d)
	if r.Sign() < 0 {
		n.Neg(n)
	}
	return n
}

// isDecimal reports whether text is -?digits[.digits][(e|E)[+-]digits], at most
// 64 bytes: JSON's number (RFC 8259 section 6), leading zeros allowed.
func isDecimal(text string) bool {
	if len(text) == 0 || len(text) > 64 {
		return false
	}
	s := strings.TrimPrefix(text, "-")
	if s, ok := digits(s); ok {
		if rest, found := strings.CutPrefix(s, "."); found {
			if s, ok = digits(rest); !ok {
				return false
			}
		}
		if s == "" {
			return true
		}
		if s[0] != 'e' && s[0] != 'E' {
			return false
		}
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		rest, ok := digits(s)
		return ok && rest == ""
	}
	return false
}

// digits cuts the leading decimal digits from s and reports whether there was one.
func digits(s string) (rest string, ok bool) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[i:], i > 0
}
