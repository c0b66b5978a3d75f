package api

import (
	"errors"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"deckle"
	"deckle/internal/catalog"
	"deckle/internal/dashboard/report"
	"deckle/internal/projection"
)

// A Report is what a report says, in JSON.
type Report struct {
	From string                 `json:"from"` // days of UTC, both included
	To   string                 `json:"to"`
	By   []projection.Dimension `json:"by"`

	// AsOf is the time of the latest event that is counted; absent when there is none.
	AsOf time.Time `json:"asOf,omitzero"`

	Rows   []ReportRow `json:"rows"`
	Totals []ReportRow `json:"totals"` // one for each currency
}

// A ReportRow is what happened where its dimensions say so.
type ReportRow struct {
	Day        string `json:"day,omitzero"`
	Site       string `json:"site,omitzero"`
	Advertiser string `json:"advertiser,omitzero"`
	Campaign   string `json:"campaign,omitzero"`
	Creative   string `json:"creative,omitzero"`
	Currency   string `json:"currency,omitzero"` // absent where the publisher is not known

	Organic  ReportActions `json:"organic"`
	Dogeared ReportActions `json:"dogeared"`
	Spend    deckle.Money  `json:"spend"` // micros

	Viewability *float64    `json:"viewability,omitempty"`
	CTR         *float64    `json:"ctr,omitempty"`
	ECPM        *deckle.CPM `json:"ecpm,omitempty"` // micros

	Folds        int64    `json:"folds"`
	Unfolds      int64    `json:"unfolds"`
	PinRetention *float64 `json:"pinRetention,omitempty"`

	Unbilled ReportUnbilled `json:"unbilled"`
	Suspects int64          `json:"suspects"`
}

// ReportActions are what readers did.
type ReportActions struct {
	Impressions int64 `json:"impressions"`
	Viewable    int64 `json:"viewable"`
	Clicks      int64 `json:"clicks"`
	CTA         int64 `json:"cta"`
}

// ReportUnbilled are impressions that nobody pays for, by reason.
type ReportUnbilled struct {
	Duplicate      int64 `json:"duplicate"` // not among the impressions
	Sealed         int64 `json:"sealed"`
	LeaseExhausted int64 `json:"leaseExhausted"`
}

func reportRow(currency string, r report.Row) ReportRow {
	return ReportRow{
		Day: r.Day, Site: r.Site, Advertiser: r.Advertiser, Campaign: r.Campaign, Creative: r.Creative, Currency: currency,
		Organic: ReportActions(r.Organic), Dogeared: ReportActions(r.Dogeared), Spend: r.Spend,
		Viewability: maybe(r.Viewability()), CTR: maybe(r.CTR()), ECPM: maybe(r.ECPM()),
		Folds: r.Folds, Unfolds: r.Unfolds, PinRetention: maybe(r.Retention()),
		Unbilled: ReportUnbilled(r.Unbilled), Suspects: r.Suspects,
	}
}

func maybe[T any](v T, ok bool) *T {
	if !ok {
		return nil
	}
	return &v
}

// report answers in CSV at the path that says so, and where a client prefers it.
func (a *API) report(c call) error {
	csv, err := wantsCSV(c.r)
	if err != nil {
		return err
	}
	if a.tables == nil {
		return problem(http.StatusServiceUnavailable, "not_open", "the reports of this node are not open").after(time.Second)
	}
	s, err := a.snapshot()
	if err != nil {
		return err
	}
	q, wrong := report.Parse(c.r.URL.Query(), s, time.Now())
	if wrong != nil {
		return invalid(wrong...)
	}
	rep, err := report.Run(c.r.Context(), a.tables, s, q)
	if errors.Is(err, projection.ErrTooLarge) {
		return invalid(catalog.Problem{Field: "by", Msg: "too many rows", Remedy: "fewer days, one campaign, or fewer dimensions"})
	}
	if err != nil {
		return err
	}
	h := c.w.Header()
	h.Set("Vary", "Accept")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": "deckle_" + q.Title() + extension(csv)}))
	if csv {
		h.Set("Content-Type", csvMedia)
		_ = report.WriteCSV(c.w, s, rep) // an error says that the client has gone
		return nil
	}
	h.Set("Content-Type", jsonMedia)
	_ = json.MarshalWrite(c.w, reportOf(rep), jsontext.Multiline(true)) // likewise
	return nil
}

// csvMedia is the media type of CSV with a header (RFC 4180).
const csvMedia = "text/csv; charset=utf-8; header=present"

func extension(csv bool) string {
	if csv {
		return ".csv"
	}
	return ".json"
}

func reportOf(rep report.Report) Report {
	out := Report{From: rep.From, To: rep.To, By: rep.By, AsOf: rep.AsOf, Rows: []ReportRow{}, Totals: []ReportRow{}}
	for _, g := range rep.Groups {
		for _, r := range g.Rows {
			out.Rows = append(out.Rows, reportRow(g.Currency, r))
		}
		out.Totals = append(out.Totals, reportRow(g.Currency, report.Row{Counts: g.Total}))
	}
	return out
}

// wantsCSV reports which of the two forms a request prefers: by its path, or by what
// comes first in Accept. Weights (q) of zero are read; others are not.
func wantsCSV(r *http.Request) (bool, error) {
	if strings.HasSuffix(r.URL.Path, ".csv") {
		return true, nil
	}
	accept := strings.Join(r.Header.Values("Accept"), ",")
	for part := range strings.SplitSeq(accept, ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil || strings.Trim(params["q"], "0.") == "" && params["q"] != "" {
			continue
		}
		switch media {
		case "text/csv", "text/*":
			return true, nil
		case jsonMedia, "application/*", "*/*":
			return false, nil
		}
	}
	if strings.TrimSpace(accept) == "" {
		return false, nil
	}
	return false, problem(http.StatusNotAcceptable, "not_acceptable", "a report is %s or text/csv", jsonMedia)
}
