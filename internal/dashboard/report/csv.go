package report

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"deckle"
	"deckle/internal/catalog"
	"deckle/internal/projection"
)

// WriteCSV writes the rows of all currencies as CSV (RFC 4180, UTF-8): a header, and
// one line a row, whose currency is a column. Amounts are in whole units with a
// point, ratios are from 0 to 1, and both are empty where there is none. Texts that a
// spreadsheet would take for a formula have an apostrophe before them.
func WriteCSV(w io.Writer, s *catalog.Snapshot, rep Report) error {
	buffered := bufio.NewWriter(w)
	out := csv.NewWriter(buffered)
	if err := out.Write(csvHeader(rep.By)); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	for _, g := range rep.Groups {
		for _, r := range g.Rows {
			if err := out.Write(csvLine(s, rep.By, g.Currency, r)); err != nil {
				return fmt.Errorf("write report: %w", err)
			}
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return buffered.Flush()
}

// named reports whether what a dimension tells apart has names beside its ids.
func named(d projection.Dimension) bool {
	return d != projection.ByDay && d != projection.BySite
}

func csvHeader(by []projection.Dimension) (columns []string) {
	for _, d := range by {
		columns = append(columns, string(d))
		if named(d) {
			columns = append(columns, string(d)+"_name")
		}
	}
	return append(
		columns,
		"currency", "impressions", "viewable", "clicks", "cta", "spend",
		"viewability", "ctr", "ecpm", "folds", "unfolds", "pin_retention",
		"dogeared_impressions", "dogeared_viewable", "dogeared_clicks", "dogeared_cta",
		"unbilled_duplicate", "unbilled_sealed", "unbilled_lease_exhausted", "suspects",
	)
}

func csvLine(s *catalog.Snapshot, by []projection.Dimension, currency string, r Row) (cells []string) {
	for _, d := range by {
		cells = append(cells, harmless(r.Value(d)))
		if named(d) {
			cells = append(cells, harmless(Name(s, d, r.Value(d))))
		}
	}
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	ecpm := ""
	if v, ok := r.ECPM(); ok {
		ecpm = v.String()
	}
	return append(
		cells,
		currency, n(r.Organic.Impressions), n(r.Organic.Viewable), n(r.Organic.Clicks), n(r.Organic.CTA), deckle.CPM(r.Spend).String(),
		decimal(r.Viewability()), decimal(r.CTR()), ecpm, n(r.Folds), n(r.Unfolds), decimal(r.Retention()),
		n(r.Dogeared.Impressions), n(r.Dogeared.Viewable), n(r.Dogeared.Clicks), n(r.Dogeared.CTA),
		n(r.Unbilled.Duplicate), n(r.Unbilled.Sealed), n(r.Unbilled.LeaseExhausted), n(r.Suspects),
	)
}

func decimal(v float64, ok bool) string {
	if !ok {
		return ""
	}
	return strconv.FormatFloat(v, 'f', 6, 64)
}

// harmless keeps a spreadsheet from running a text: what begins like a formula, or
// with what is skipped before one, is shown as text (OWASP, CSV Injection).
func harmless(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", []rune(text)[0]) {
		return "'" + text
	}
	return text
}
