package dashboard

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// A chart is columns over days, drawn as SVG in the page itself, with the same numbers
// as a table below it. Its lines and texts are the page's own, so that they keep their
// size on every screen; only the columns are stretched.
type chart struct {
	ID    string // unique in the page
	Title string
	About string // what it shows, for who does not see it

	Keys  []chartKey // what the colours mean; none for a single series
	Top   string     // at the upper end of the axis
	Half  string     // in the middle of it
	First string     // below the first column
	Last  string     // below the last one
	Width int        // of the drawing, whose height is 100
	Bars  []bar

	Head []string // of the table: "Day", and the series
	Rows [][]string
}

type chartKey struct{ Class, Text string }

// A bar is a rectangle of a chart.
type bar struct {
	X, Y, W, H string // in the units of the drawing
	Class      string
	Title      string // told by a pointer that rests on it
}

// A series is what a chart shows, one value for each day.
type series struct {
	Name   string
	Class  string // of its bars in the stylesheet
	Values []int64
}

// maxColumns is from where days become weeks: a column would be a hair.
const maxColumns = 92

// columnWidth is the width of a column with the gap beside it, in units of a drawing.
const columnWidth = 10

// A measure is what a chart's values are: how they are written, and the least of them
// that can be told apart.
type measure struct {
	format func(int64) string
	unit   int64
}

func inMoney(currency string) measure {
	return measure{func(v int64) string { return money(v, currency) }, minorUnit(currency)}
}

var inCount = measure{count, 1}

// newChart draws series over days, one on the other.
func newChart(id, title string, days []string, in measure, all ...series) chart {
	step, word := 1, "Day"
	if len(days) > maxColumns {
		step, word = 7, "Week from"
		for i := range all {
			all[i].Values = inSteps(all[i].Values, step)
		}
	}
	columns := (len(days) + step - 1) / step
	c := chart{ID: id, Title: title, Width: columns * columnWidth, Head: []string{word}}
	var highest, total int64
	for i := range columns {
		var sum int64
		for _, s := range all {
			sum += s.Values[i]
		}
		highest, total = max(highest, sum), total+sum
	}
	top := roundAbove((highest+in.unit-1)/in.unit) * in.unit
	c.Top, c.Half = in.format(top), in.format(top/2)
	for _, s := range all {
		c.Head = append(c.Head, s.Name)
		if len(all) > 1 {
			c.Keys = append(c.Keys, chartKey{s.Class, s.Name})
		}
	}
	for i := range columns {
		c.column(i, dayText(days[i*step]), top, in.format, all)
	}
	c.First, c.Last = dayText(days[0]), dayText(days[(columns-1)*step])
	c.About = fmt.Sprintf("%s from %s to %s: %s in all, at most %s a %s.", title, dayText(days[0]), dayText(days[len(days)-1]),
		in.format(total), in.format(highest), strings.ToLower(strings.TrimSuffix(word, " from")))
	return c
}

// column draws one place of all series, and writes its row of the table.
func (c *chart) column(i int, name string, top int64, format func(int64) string, all []series) {
	row, title := []string{name}, name
	for _, s := range all {
		row = append(row, format(s.Values[i]))
		title += "\n" + s.Name + ": " + format(s.Values[i])
	}
	c.Rows = append(c.Rows, row)
	below := 0.0
	for _, s := range all {
		h := float64(s.Values[i]) / float64(top) * 100
		if h <= 0 {
			continue
		}
		below += h
		c.Bars = append(c.Bars, bar{
			X: number(float64(i*columnWidth) + 1.25), Y: number(100 - below), W: number(columnWidth - 2.5), H: number(h),
			Class: s.Class, Title: title,
		})
	}
}

func number(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
}

// inSteps adds up neighbours.
func inSteps(values []int64, step int) []int64 {
	out := make([]int64, (len(values)+step-1)/step)
	for i, v := range values {
		out[i/step] += v
	}
	return out
}

// roundAbove is the upper end of an axis: a digit and zeros, so that its half is whole
// and short as well.
func roundAbove(v int64) int64 {
	if v <= 2 {
		return 2
	}
	power := int64(math.Pow10(int(math.Log10(float64(v)))))
	for _, n := range []int64{1, 2, 3, 4, 5, 6, 8, 10} {
		if n*power >= v && n*power%2 == 0 {
			return n * power
		}
	}
	return v
}

// dayText is a day as a chart writes it: "2 Jan".
func dayText(day string) string {
	d, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return day
	}
	return d.Format("2 Jan 2006")
}

// A meter is a part of a whole, as a line that is filled: of a budget what is spent,
// and what is spoken for.
type meter struct {
	About  string // for who does not see it
	Full   string // width of the first part, of 100
	Behind string // width of the second, beside it
	Over   bool   // the first part is the whole
}

// newMeter shows a and b as parts of whole, which is above 0.
func newMeter(about string, a, b, whole int64) meter {
	share := func(v int64) float64 { return min(max(float64(v)/float64(max(whole, 1))*100, 0), 100) }
	return meter{About: about, Full: number(share(a)), Behind: number(share(a + b)), Over: whole > 0 && a >= whole}
}
