// Package sql stands in for dex' SQLite, which needs a C compiler: dex keeps its state in memory here.
package sql

import (
	"errors"
	"log/slog"

	"github.com/dexidp/dex/storage"
)

// SQLite3 is left out.
type SQLite3 struct {
	File string `json:"file"`
}

// Open refuses.
func (s *SQLite3) Open(_ *slog.Logger) (storage.Storage, error) {
	return nil, errors.New("SQLite is left out of this build")
}
