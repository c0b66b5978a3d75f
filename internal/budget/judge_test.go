package budget_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"deckle"
	"deckle/internal/journal"
	"deckle/internal/store"
)

// A judge knows what was spent by the words of the contract: it folds the journal as it
// is, and shares no code with the folds that books go by.
type judge struct {
	next   store.Seq
	lines  map[string]string       // by lease
	amount map[string]deckle.Money // of leases, as the journal has them
	paid   map[string]deckle.Money
	sealed map[string]bool
	told   map[string]bool // request ids
	billed int
	bills  map[string]deckle.Money // by campaign
	wasted map[string]int          // unbilled, by why

	stored map[string]judged          // lines, as the store has them
	leases map[string]map[string]bool // all that a line ever had
	nodes  map[string]bool            // incarnations
}

// judged is a line, read without the code that writes it.
type judged struct {
	Settled, Outside deckle.Money
	Leases           []struct {
		ID, Node string
		Amount   deckle.Money
	}
}

func newJudge() *judge {
	return &judge{
		next: 1, lines: map[string]string{}, amount: map[string]deckle.Money{}, paid: map[string]deckle.Money{},
		sealed: map[string]bool{}, told: map[string]bool{}, bills: map[string]deckle.Money{}, wasted: map[string]int{},
		stored: map[string]judged{}, leases: map[string]map[string]bool{}, nodes: map[string]bool{},
	}
}

var errCaughtUp = errors.New("caught up")

// read folds what has come since.
func (j *judge) read(ctx context.Context, log store.Log, leases store.KV) error {
	state, err := log.State(ctx)
	if err != nil {
		return err
	}
	if j.next <= state.Last {
		err = journal.Read(ctx, log, j.next, func(envelope []journal.Record) error {
			for i := range envelope {
				j.fold(&envelope[i])
			}
			if j.next = envelope[0].Seq + 1; j.next > state.Last {
				return errCaughtUp
			}
			return nil
		})
		if !errors.Is(err, errCaughtUp) {
			return fmt.Errorf("read the journal: %w", err)
		}
	}
	clear(j.stored)
	err = leases.Watch(ctx, func(c store.Change) error {
		if c.Complete {
			return errCaughtUp
		}
		if node, ok := strings.CutPrefix(c.Key, "node/"); ok {
			j.nodes[node] = true
			return nil
		}
		return j.line(&c)
	})
	if !errors.Is(err, errCaughtUp) {
		return fmt.Errorf("read the leases: %w", err)
	}
	return nil
}

func (j *judge) line(c *store.Change) error {
	var l judged
	if !c.Deleted {
		if err := json.Unmarshal(c.Value, &l); err != nil {
			return err
		}
	}
	j.stored[c.Key] = l
	for _, g := range l.Leases {
		j.had(c.Key, g.ID)
	}
	return nil
}

func (j *judge) had(line, lease string) {
	if j.leases[line] == nil {
		j.leases[line] = map[string]bool{}
	}
	j.leases[line][lease] = true
}

func (j *judge) fold(r *journal.Record) {
	switch r.Kind {
	case journal.Lease:
		if _, again := j.amount[r.Lease]; !again && !j.sealed[r.Lease] {
			j.amount[r.Lease], j.lines[r.Lease] = r.Amount, r.Line
			j.had(r.Line, r.Lease)
		}
	case journal.Seal:
		j.sealed[r.Lease] = true
	case journal.Impression:
		if j.told[r.RequestID] {
			j.wasted["duplicate"]++
			return
		}
		j.told[r.RequestID] = true
		for _, id := range r.Leases {
			if j.sealed[id] {
				j.wasted["sealed"]++
				return
			}
		}
		for _, id := range r.Leases {
			if j.paid[id]+r.Price > j.amount[id] {
				j.wasted["lease_exhausted"]++
				return
			}
		}
		for _, id := range r.Leases {
			j.paid[id] += r.Price
		}
		j.billed++
		j.bills[r.Campaign] += r.Price
	}
}

// spent is what the journal has of a line, whoever paid it.
func (j *judge) spent(line string) (sum deckle.Money) {
	for id, paid := range j.paid {
		if j.lines[id] == line {
			sum += paid
		}
	}
	return sum
}

// outside is what of a campaign's bills no lease of its total has paid for.
func (j *judge) outside(line string) deckle.Money {
	if id, ok := strings.CutPrefix(line, "campaign/"); ok && !strings.Contains(id, "/") {
		return j.bills[id] - j.spent(line)
	}
	return 0
}

func (l judged) committed() deckle.Money {
	sum := l.Outside + l.Settled
	for _, g := range l.Leases {
		sum += g.Amount
	}
	return sum
}

func (l judged) has(id string) bool {
	for _, g := range l.Leases {
		if g.ID == id {
			return true
		}
	}
	return false
}

// verdict is what is wrong with the lines; allowed is how much each may have given out.
func (j *judge) verdict(allowed func(line string) deckle.Money) error {
	for name, l := range j.stored {
		if got, most := l.committed(), allowed(name); got > most {
			return fmt.Errorf("%s: settled + leases are %d of %d", name, got, most)
		}
		if most := j.outside(name); l.Outside > most {
			return fmt.Errorf("%s: %d outside, the journal has %d", name, l.Outside, most)
		}
		if spent := j.spent(name); spent > l.committed()-l.Outside {
			return fmt.Errorf("%s: %d spent, %d settled and leased", name, spent, l.committed())
		}
		var settled deckle.Money
		for id := range j.leases[name] {
			if l.has(id) {
				continue
			}
			if !j.sealed[id] {
				return fmt.Errorf("%s: lease %s is settled and not sealed", name, id)
			}
			settled += j.paid[id]
		}
		if settled != l.Settled {
			return fmt.Errorf("%s: %d settled, the journal says %d", name, l.Settled, settled)
		}
		for _, g := range l.Leases {
			if amount, ok := j.amount[g.ID]; ok && amount != g.Amount {
				return fmt.Errorf("%s: lease %s of %d is one of %d in the journal", name, g.ID, g.Amount, amount)
			}
		}
	}
	return nil
}
