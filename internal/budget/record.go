package budget

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"deckle"
	"deckle/internal/journal"
)

// Keys of the bucket, and their values as JSON:
//
//	campaign/ID  campaign/ID/DATE  advertiser/ID/DATE   a record: one line
//	node/INCARNATION                                    a presence
//
// A value of a higher version, or with a member that is not known, is not touched: it
// may hold what counts. So every node is brought to a program that reads a new form
// before the first one writes it.
const (
	formVersion = 1
	nodePrefix  = "node/"
)

// errForm says that a value is none that this program could have written.
var errForm = errors.New("not a form that this program knows")

// maxLeases is how many leases a line may have out: some of each node, and those that
// wait for their seal.
const maxLeases = 64

// A record is a line as the store has it: what its settled leases have paid for, and
// the leases that are out. It is written by compare-and-set only, and
//
//	Outside + Settled + the amounts of Leases ≤ budget
//
// held in every write that added a lease.
type record struct {
	Version int          `json:"v"`
	Settled deckle.Money `json:"settled"`

	// Outside is what a campaign has spent that no lease of its total has paid for, as far
	// as was known: while it had no total. 0 for other lines.
	Outside deckle.Money `json:"outside,omitzero"`

	Leases []grant `json:"leases,omitzero"` // in the order in which they were taken
}

// A grant is a lease as its line has it.
type grant struct {
	ID     string       `json:"id"`
	Node   string       `json:"node"` // the incarnation that took it, and the only one that reserves from it
	Amount deckle.Money `json:"amount"`

	// Closed is when its end was noted, in Unix milliseconds; 0 while it may be reserved
	// from. It is in the store before the lease's seal is in the journal, so that a
	// lease without it, and whose node has not ended, has never been sealed.
	Closed int64 `json:"closed,omitzero"`
}

// A presence says that an incarnation is alive: it is written again and again, and
// the store's time of the last writing is what others go by.
type presence struct {
	Version int `json:"v"`

	// Ended is since when it reserves nothing, in Unix milliseconds; 0 while it may. It
	// notes the end of all leases of the incarnation at once.
	Ended int64 `json:"ended,omitzero"`
}

// leased is the sum of the leases that are out.
func (r *record) leased() (sum deckle.Money) {
	for i := range r.Leases {
		sum += r.Leases[i].Amount
	}
	return sum
}

// committed is what of the budget is not free.
func (r *record) committed() deckle.Money { return r.ended() + r.leased() }

// ended is what has been spent for good.
func (r *record) ended() deckle.Money { return r.Outside + r.Settled }

func (r *record) has(lease string) bool {
	return slices.ContainsFunc(r.Leases, func(g grant) bool { return g.ID == lease })
}

func (r *record) encode() ([]byte, error) {
	r.Version = formVersion
	return json.Marshal(r)
}

// decodeRecord reads a line. Its errors wrap errForm.
func decodeRecord(data []byte) (r record, err error) {
	if err := decodeForm(data, &r); err != nil {
		return record{}, err
	}
	if r.Version != formVersion || r.Settled < 0 || r.Outside < 0 || r.ended() < 0 || len(r.Leases) > 4*maxLeases {
		return record{}, fmt.Errorf("version %d: %w", r.Version, errForm)
	}
	sum := r.ended()
	for i := range r.Leases {
		g := &r.Leases[i]
		if g.ID == "" || len(g.ID) > journal.MaxID || g.Amount <= 0 || sum+g.Amount < sum {
			return record{}, fmt.Errorf("lease %d: %w", i, errForm)
		}
		sum += g.Amount
	}
	return r, nil
}

func decodePresence(data []byte) (p presence, err error) {
	if err := decodeForm(data, &p); err != nil {
		return presence{}, err
	}
	if p.Version != formVersion {
		return presence{}, fmt.Errorf("version %d: %w", p.Version, errForm)
	}
	return p, nil
}

func decodeForm(data []byte, into any) error {
	if err := json.Unmarshal(data, into, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("%w: %w", errForm, err)
	}
	return nil
}

// A Kind is which budget a line holds to.
type Kind uint8

// The kinds of lines, in the order in which they are reserved.
const (
	CampaignTotal Kind = iota
	CampaignDay
	AdvertiserDay
)

// String is the kind as metrics have it: "campaign_day".
func (k Kind) String() string {
	return [...]string{"campaign_total", "campaign_day", "advertiser_day"}[k]
}

// TotalLine names the line of a campaign's total budget.
func TotalLine(campaign string) string { return "campaign/" + campaign }

// DayLine names the line of a campaign's budget of a day: a date in the advertiser's
// time zone, as [Day] has it.
func DayLine(campaign, date string) string { return "campaign/" + campaign + "/" + date }

// AdvertiserLine names the line of an advertiser's budget of a day.
func AdvertiserLine(advertiser, date string) string { return "advertiser/" + advertiser + "/" + date }

// campaignOf is whose total a line of that kind is.
func campaignOf(totalLine string) string { return strings.TrimPrefix(totalLine, "campaign/") }

// parseLine reads a line's name; date is "" for a total.
func parseLine(name string) (k Kind, date string, ok bool) {
	of, rest, _ := strings.Cut(name, "/")
	id, date, dated := strings.Cut(rest, "/")
	switch {
	case id == "" || strings.Contains(date, "/"):
		return 0, "", false
	case of == "campaign" && !dated:
		return CampaignTotal, "", true
	case of == "campaign":
		k = CampaignDay
	case of == "advertiser" && dated:
		k = AdvertiserDay
	default:
		return 0, "", false
	}
	_, err := time.Parse(time.DateOnly, date)
	return k, date, err == nil
}
