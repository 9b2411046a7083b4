package screen

import (
	"strings"
	"unicode/utf8"
)

// Cell is one entry of a table.
type Cell struct {
	Text  string
	Paint Paint
}

// Table is a table under construction. Its columns are as wide as they need to
// be; colours do not count.
type Table struct {
	// Indent goes before each row.
	Indent string
	rows   [][]Cell
}

// Head adds the row of titles.
func (t *Table) Head(titles ...string) {
	cells := make([]Cell, 0, len(titles))
	for _, title := range titles {
		cells = append(cells, Cell{Text: title, Paint: Head})
	}
	t.rows = append(t.rows, cells)
}

// Row adds a row. An empty cell is shown as a dash.
func (t *Table) Row(cells ...Cell) {
	for i, c := range cells {
		cells[i].Text = Clean(c.Text)
		if c.Text == "" {
			cells[i].Text = "-"
		}
	}
	t.rows = append(t.rows, cells)
}

// Texts makes cells without colour.
func Texts(texts ...string) []Cell {
	cells := make([]Cell, 0, len(texts))
	for _, text := range texts {
		cells = append(cells, Cell{Text: text})
	}
	return cells
}

// Print prints the table.
func (s Screen) Print(t Table) {
	var widths []int
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.Text))
		}
	}
	for _, row := range t.rows {
		var line strings.Builder
		line.WriteString(t.Indent)
		for i, c := range row {
			line.WriteString(s.Painted(c.Paint, c.Text))
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.Text)+2))
			}
		}
		s.Linef("%s", line.String())
	}
}
