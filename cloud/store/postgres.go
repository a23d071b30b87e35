package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// openPostgres opens a pool. Whatever dsn leaves out comes from the libpq variables, as everywhere with PostgreSQL.
func openPostgres(ctx context.Context, dsn string) (*Store, error) {
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("name of the PostgreSQL database: %w", err) // pgx leaves the password out
	}
	db := stdlib.OpenDB(*c)
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return &Store{db: db, d: &dialect{postgres: true}}, ping(ctx, db)
}

func ping(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, methodTime)
	defer cancel()
	if err := db.PingContext(ctx); err != nil {
		_ = db.Close()
		return fmt.Errorf("database does not answer: %w", err)
	}
	return nil
}
