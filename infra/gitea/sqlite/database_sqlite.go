// Package setting stands in for Gitea's choice of SQLite, which needs a C compiler: the same SQLite, translated to Go.
package setting

import (
	"database/sql"
	"database/sql/driver"
	"strings"

	"modernc.org/sqlite"
)

// What is written needn't survive a machine's crash; writers wait for each other.
const options = "?_txlock=immediate&_pragma=busy_timeout(30000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)"

// opener has the name and takes the addresses of the SQLite that Gitea asks for, whose options have another spelling here.
type opener struct{ sqlite.Driver }

// Open opens a database's file.
func (o *opener) Open(name string) (driver.Conn, error) {
	file, _, _ := strings.Cut(name, "?")
	return o.Driver.Open(file + options)
}

func init() {
	sql.Register("sqlite3", new(opener))
	EnableSQLite3 = true
	SupportedDatabaseTypes = append(SupportedDatabaseTypes, "sqlite3")
}
