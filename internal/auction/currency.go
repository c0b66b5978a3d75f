package auction

import (
	"math/big"
	"strings"
)

// Rates is a dated table of exchange rates. The zero value converts nothing, but
// a currency to itself.
type Rates struct {
	Base  string              // ISO 4217
	Date  string              // of the rates, as configured; for people
	Units map[string]*big.Rat // one unit of each currency is so many of Base; all above zero
}

// Rate is what a price in one currency is multiplied by to be one in another, by
// way of the base, exactly. A nil rate means that nothing has to be multiplied;
// false, that the table does not know one of the two. Case does not matter.
func (t Rates) Rate(from, to string) (*big.Rat, bool) {
	from, to = strings.ToUpper(from), strings.ToUpper(to)
	if from == to {
		return nil, from != ""
	}
	have, want := t.inBase(from), t.inBase(to)
	if have == nil || want == nil {
		return nil, false
	}
	return new(big.Rat).Quo(have, want), true
}

// inBase is one unit of a currency in the base, or nil.
func (t Rates) inBase(cur string) *big.Rat {
	if cur == strings.ToUpper(t.Base) {
		return big.NewRat(1, 1)
	}
	if r := t.Units[cur]; r != nil && r.Sign() > 0 {
		return r
	}
	return nil
}
