package mysqlwire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Rows makes a text result. All values of a column are texts or nil, so that clients see one type.
func Rows(names []string, rows [][]any) (*mysql.Result, error) {
	set, err := mysql.BuildSimpleTextResultset(names, rows)
	if err != nil {
		return nil, fmt.Errorf("build result: %w", err)
	}
	if len(rows) == 0 {
		for _, f := range set.Fields {
			f.Type = mysql.MYSQL_TYPE_VAR_STRING
		}
	}
	return &mysql.Result{Resultset: set}, nil
}

func (c *conn) writeResult(r *mysql.Result) error {
	if r == nil {
		return c.writeOK(0)
	}
	if r.Resultset == nil {
		return c.writeOK(r.AffectedRows)
	}
	if err := c.write(mysql.PutLengthEncodedInt(uint64(len(r.Fields)))); err != nil {
		return err
	}
	for _, f := range r.Fields {
		if err := c.write(f.Dump()); err != nil {
			return err
		}
	}
	if err := c.writeEOF(); err != nil {
		return err
	}
	for _, row := range r.RowDatas {
		if err := c.write(row); err != nil {
			return err
		}
	}
	return c.writeEOF()
}

func (c *conn) write(payload []byte) error {
	return c.WritePacket(append(make([]byte, 4, 4+len(payload)), payload...))
}

func (c *conn) writeOK(affected uint64) error {
	data := []byte{mysql.OK_HEADER}
	data = append(data, mysql.PutLengthEncodedInt(affected)...)
	data = append(data, 0) // last insert id
	data = binary.LittleEndian.AppendUint16(data, mysql.SERVER_STATUS_AUTOCOMMIT)
	return c.write(binary.LittleEndian.AppendUint16(data, 0))
}

func (c *conn) writeEOF() error {
	data := []byte{mysql.EOF_HEADER, 0, 0}
	return c.write(binary.LittleEndian.AppendUint16(data, mysql.SERVER_STATUS_AUTOCOMMIT))
}

func (c *conn) writeError(err error) error {
	var e *mysql.MyError
	if !errors.As(err, &e) {
		e = mysql.NewError(mysql.ER_UNKNOWN_ERROR, err.Error())
	}
	data := []byte{mysql.ERR_HEADER}
	data = binary.LittleEndian.AppendUint16(data, e.Code)
	data = append(data, '#')
	data = append(data, e.State...)
	return c.write(append(data, e.Message...))
}
