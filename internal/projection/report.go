package projection

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"deckle"
	"deckle/internal/journal"
)

// Report is the projection behind every report: what happened to each creative on
// each site and day, and what each lease has paid for. A day is one of UTC.
type Report struct{}

// Name is "report".
func (Report) Name() string { return "report" }

// Apply counts one event.
func (r Report) Apply(tx *Tx, rec journal.Record) error {
	switch {
	case rec.Kind == journal.Lease:
		return r.lease(tx, rec)
	case rec.Kind == journal.Seal:
		return r.seal(tx, rec)
	case rec.Suspect != 0:
		return count(tx, rec, countSuspect)
	case rec.Kind == journal.Impression:
		return r.impression(tx, rec)
	case rec.Dogeared && countDogeared[rec.Kind] != "":
		return count(tx, rec, countDogeared[rec.Kind])
	default:
		return count(tx, rec, countOrganic[rec.Kind])
	}
}

// Repeat counts an organic impression that was told again among the unbilled ones.
func (Report) Repeat(tx *Tx, rec journal.Record) error {
	if rec.Kind == journal.Impression && rec.Suspect == 0 && !rec.Dogeared {
		return count(tx, rec, countDuplicate)
	}
	return nil
}

// Statements that add one to a column of the event's row.
const (
	newRow = `INSERT INTO report (day, site, advertiser, campaign, creative, `

	countSuspect   = newRow + `suspects) VALUES (?, ?, ?, ?, ?, 1) ON CONFLICT DO UPDATE SET suspects = suspects + 1`
	countDuplicate = newRow + `unbilled_duplicate) VALUES (?, ?, ?, ?, ?, 1) ON CONFLICT DO UPDATE SET unbilled_duplicate = unbilled_duplicate + 1`

	countImpression = newRow + `impressions, spend, unbilled_sealed, unbilled_exhausted) VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?)
		ON CONFLICT DO UPDATE SET impressions = impressions + 1, spend = spend + excluded.spend,
			unbilled_sealed = unbilled_sealed + excluded.unbilled_sealed,
			unbilled_exhausted = unbilled_exhausted + excluded.unbilled_exhausted`
)

var countOrganic = [...]string{
	journal.View:   newRow + `viewable) VALUES (?, ?, ?, ?, ?, 1) ON CONFLICT DO UPDATE SET viewable = viewable + 1`,
	journal.Click:  newRow + `clicks) VALUES (?, ?, ?, ?, ?, 1) ON CONFLICT DO UPDATE SET clicks = clicks + 1`,
	journal.CTA:    newRow + `cta) VALUES (?, ?, ?, ?, ?, 1) ON CONFLICT DO UPDATE SET cta = cta + 1`,
	journal.Fold:   newRow + `folds) VALUES (?, ?, ?, ?, ?, 1) ON CONFLICT DO UPDATE SET folds = folds + 1`,
	journal.Unfold: newRow + `unfolds) VALUES (?, ?, ?, ?, ?, 1) ON CONFLICT DO UPDATE SET unfolds = unfolds + 1`,
}

var countDogeared = [len(countOrganic)]string{
	journal.Impression: newRow + `dogeared_impressions) VALUES (?, ?, ?, ?, ?, 1) ON CONFLICT DO UPDATE SET dogeared_impressions = dogeared_impressions + 1`,
	journal.View:       newRow + `dogeared_viewable) VALUES (?, ?, ?, ?, ?, 1) ON CONFLICT DO UPDATE SET dogeared_viewable = dogeared_viewable + 1`,
	journal.Click:      newRow + `dogeared_clicks) VALUES (?, ?, ?, ?, ?, 1) ON CONFLICT DO UPDATE SET dogeared_clicks = dogeared_clicks + 1`,
	journal.CTA:        newRow + `dogeared_cta) VALUES (?, ?, ?, ?, ?, 1) ON CONFLICT DO UPDATE SET dogeared_cta = dogeared_cta + 1`,
}

func count(tx *Tx, rec journal.Record, statement string, more ...any) error {
	key := [...]any{day(rec.At), rec.Site, rec.Advertiser, rec.Campaign, rec.Creative}
	_, err := tx.Exec(statement, append(key[:], more...)...)
	return err
}

// day is the day of UTC that t is in: "2006-01-02".
func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// impression counts an impression and books its price, if its leases can pay it.
func (Report) impression(tx *Tx, rec journal.Record) error {
	if rec.Dogeared {
		return count(tx, rec, countDogeared[journal.Impression])
	}
	why, err := pay(tx, rec.Price, rec.Leases)
	if err != nil {
		return err
	}
	var spend deckle.Money
	if why == Billed {
		spend = rec.Price
	}
	return count(tx, rec, countImpression, int64(spend), why == Sealed, why == LeaseExhausted)
}

// pay takes price from every lease, or from none and says why.
func pay(tx *Tx, price deckle.Money, leases []string) (Billing, error) {
	for i, id := range leases {
		n, err := tx.Exec(`UPDATE leases SET spent = spent + ?1 WHERE id = ?2 AND sealed = 0 AND ?1 <= amount - spent`, int64(price), id)
		if err != nil {
			return 0, err
		}
		if n == 1 {
			continue
		}
		for _, paid := range leases[:i] {
			if _, err := tx.Exec(`UPDATE leases SET spent = spent - ?1 WHERE id = ?2`, int64(price), paid); err != nil {
				return 0, err
			}
		}
		return refusal(tx, leases)
	}
	return Billed, nil
}

// refusal is why leases that cannot all pay do not; the verdict of [ledger.pay].
func refusal(tx *Tx, leases []string) (Billing, error) {
	for _, id := range leases {
		var sealed int64
		err := tx.QueryRow(`SELECT sealed FROM leases WHERE id = ?`, []any{id}, &sealed)
		if errors.Is(err, sql.ErrNoRows) {
			return Sealed, nil
		}
		if err != nil {
			return 0, fmt.Errorf("read lease: %w", err)
		}
		if sealed != 0 {
			return Sealed, nil
		}
	}
	return LeaseExhausted, nil
}

// lease opens a lease. One that was sealed before it came stays sealed.
func (Report) lease(tx *Tx, rec journal.Record) error {
	_, err := tx.Exec(`INSERT INTO leases (id, line, amount, spent, sealed) VALUES (?, ?, ?, 0, 0) ON CONFLICT DO NOTHING`,
		rec.Lease, rec.Line, int64(rec.Amount))
	return err
}

// seal ends a lease, also one whose own event is still to come.
func (Report) seal(tx *Tx, rec journal.Record) error {
	_, err := tx.Exec(`INSERT INTO leases (id, line, amount, spent, sealed) VALUES (?1, ?2, 0, 0, ?3)
		ON CONFLICT DO UPDATE SET sealed = ?3 WHERE sealed = 0`, rec.Lease, rec.Line, int64(rec.Seq))
	return err
}
