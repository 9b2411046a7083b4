package fe

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/test/dorissim/meta"
	"github.com/fairlead-dev/fairlead/test/dorissim/sqlparse"
)

// selectRows answers SELECT: constants and server variables here, rows from the backends.
func (s *session) selectRows(st sqlparse.Select) (*answer, error) {
	if st.From == nil {
		return s.constants(st)
	}
	_, t, err := s.lookupTable(s.node.quorum.View(), *st.From)
	if err != nil {
		return nil, err
	}
	if err := s.must("Admin_priv", "Select_priv"); err != nil {
		return nil, err
	}
	rows, err := s.node.scan(s.ctx, t)
	if err != nil {
		return nil, err
	}
	if rows, err = filter(t, rows, st.Where); err != nil {
		return nil, err
	}
	if err := order(t, rows, st); err != nil {
		return nil, err
	}
	if len(st.Items) == 1 && st.Items[0].Count {
		a := table(title(st.Items[0]))
		a.row(strconv.Itoa(len(rows)))
		return a, nil
	}
	if st.Limit >= 0 && st.Limit < len(rows) {
		rows = rows[:st.Limit]
	}
	return project(t, rows, st.Items)
}

func title(it sqlparse.Item) string {
	switch {
	case it.Alias != "":
		return it.Alias
	case it.Count:
		return "count(*)"
	case it.Literal != nil:
		return *it.Literal
	case it.Column != "":
		return it.Column
	}
	return it.Function
}

func (s *session) constants(st sqlparse.Select) (*answer, error) {
	a := &answer{}
	var row []*string
	for _, it := range st.Items {
		v := it.Literal
		switch {
		case it.Star, it.Count, it.Column != "":
			return nil, fmt.Errorf("Unknown column '%s' in 'table list'", title(it)) //nolint:staticcheck // the text is the server's
		case it.Function != "":
			v = s.function(it.Function)
		}
		a.Names, row = append(a.Names, title(it)), append(row, v)
	}
	a.Rows = [][]*string{row}
	return a, nil
}

// function answers what clients ask on their own. An unknown variable is NULL, so that they go on.
func (s *session) function(name string) *string {
	text := ""
	switch strings.ToLower(name) {
	case "@@version_comment":
		text = "Doris version " + versionText(s.node.opt.Version) + " (test double)"
	case "version()", "@@version":
		text = "5.7.99"
	case "database()", "schema()":
		if s.database == "" {
			return nil
		}
		text = s.database
	case "user()", "current_user()", "session_user()":
		text = fmt.Sprintf("'%s'@'%s'", s.user, s.host)
	case "connection_id()":
		text = strconv.FormatUint(uint64(s.id), 10)
	case "@@max_allowed_packet":
		text = "16777216"
	case "@@autocommit", "@@auto_increment_increment":
		text = "1"
	case "@@lower_case_table_names":
		text = "0"
	default:
		return nil
	}
	return &text
}

func filter(t *meta.Table, rows [][]*string, where []sqlparse.Condition) ([][]*string, error) {
	for _, c := range where {
		i := columnIndex(t, c.Column)
		if i < 0 {
			return nil, fmt.Errorf("Unknown column '%s' in '%s'", c.Column, t.Name) //nolint:staticcheck // the text is the server's
		}
		kept := [][]*string{}
		for _, row := range rows {
			if row[i] != nil && holds(compare(t.Columns[i], *row[i], c.Value), c.Op) {
				kept = append(kept, row)
			}
		}
		rows = kept
	}
	return rows, nil
}

func compare(c meta.Column, a, b string) int {
	if c.Numeric {
		x, errX := strconv.ParseInt(a, 10, 64)
		y, errY := strconv.ParseInt(b, 10, 64)
		if errX == nil && errY == nil {
			switch {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		}
	}
	return strings.Compare(a, b)
}

func holds(sign int, op string) bool {
	switch op {
	case "=":
		return sign == 0
	case "<>", "!=":
		return sign != 0
	case "<":
		return sign < 0
	case "<=":
		return sign <= 0
	case ">":
		return sign > 0
	}
	return sign >= 0
}

// order sorts the rows as asked, or by all columns, so that equal tables give equal answers.
func order(t *meta.Table, rows [][]*string, st sqlparse.Select) error {
	by := make([]int, 0, len(t.Columns))
	if st.OrderBy != "" {
		i := columnIndex(t, st.OrderBy)
		if i < 0 {
			return fmt.Errorf("Unknown column '%s' in 'order clause'", st.OrderBy) //nolint:staticcheck // the text is the server's
		}
		by = append(by, i)
	}
	for i := range t.Columns {
		by = append(by, i)
	}
	sort.SliceStable(rows, func(i, j int) bool {
		for k, col := range by {
			sign := compareNull(t.Columns[col], rows[i][col], rows[j][col])
			if k == 0 && st.Desc {
				sign = -sign
			}
			if sign != 0 {
				return sign < 0
			}
		}
		return false
	})
	return nil
}

func compareNull(c meta.Column, a, b *string) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return compare(c, *a, *b)
}

// project picks the columns of a SELECT list.
func project(t *meta.Table, rows [][]*string, items []sqlparse.Item) (*answer, error) {
	a := &answer{Rows: [][]*string{}}
	var pick []int
	for _, it := range items {
		if it.Star {
			for i, c := range t.Columns {
				a.Names, pick = append(a.Names, c.Name), append(pick, i)
			}
			continue
		}
		i := columnIndex(t, it.Column)
		if i < 0 {
			return nil, fmt.Errorf("Unknown column '%s' in '%s'", title(it), t.Name) //nolint:staticcheck // the text is the server's
		}
		a.Names, pick = append(a.Names, title(it)), append(pick, i)
	}
	for _, in := range rows {
		row := make([]*string, len(pick))
		for k, i := range pick {
			row[k] = in[i]
		}
		a.Rows = append(a.Rows, row)
	}
	return a, nil
}
