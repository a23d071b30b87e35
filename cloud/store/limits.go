package store

import (
	"context"
	"strings"
	"time"
)

const dayForm = "2006-01-02"

// Reserve takes room for one call of about so many tokens (a call above the day's whole limit passes if the day is
// untouched). A *LimitError says when to try again; then nothing was taken.
func (s *Store) Reserve(ctx context.Context, sc Scope, profile string, tokens int64) (r Reservation, err error) {
	if err = check(sc.check(), inRange("tokens", tokens, 0, maxTokens)); err != nil {
		return Reservation{}, err
	}
	err = s.write(ctx, sc, func(t *tx) error {
		p, err := t.profile(profile)
		if err != nil {
			return err
		}
		at := fromMS(t.now)
		minute := at.Unix() / 60
		if p.Limits.RequestsPerMinute > 0 {
			err = t.one(&LimitError{"requests", time.Unix((minute+1)*60, 0).UTC()}, `INSERT INTO profile_minutes (profile, minute, n) VALUES (?, ?, 1)
				ON CONFLICT (profile, minute) DO UPDATE SET n = profile_minutes.n + 1 WHERE profile_minutes.n < ?`,
				profile, minute, p.Limits.RequestsPerMinute)
			if err != nil {
				return err
			}
		}
		r = Reservation{Profile: profile, Day: at.Format(dayForm), Tokens: tokens}
		if p.Limits.TokensPerDay == 0 {
			return nil
		}
		return t.one(&LimitError{"tokens", at.Truncate(24 * time.Hour).Add(24 * time.Hour)}, `INSERT INTO profile_days (profile, day, tokens) VALUES (?, ?, ?)
			ON CONFLICT (profile, day) DO UPDATE SET tokens = profile_days.tokens + excluded.tokens
			WHERE profile_days.tokens = 0 OR profile_days.tokens + excluded.tokens <= ?`, profile, r.Day, tokens, p.Limits.TokensPerDay)
	})
	return r, err
}

// Unlimited is the reservation of a call by a profile without limits: there is no room to be taken, and nothing is
// written.
func Unlimited(profile string, now time.Time) Reservation {
	return Reservation{Profile: profile, Day: now.UTC().Format(dayForm)}
}

// Settle replaces a reservation's estimate by what was spent, and writes it to the accounts: for a call whose request
// is not ended by this owner. [Store.Finish] and [Store.Fail] settle by themselves. Once per reservation.
func (s *Store) Settle(ctx context.Context, sc Scope, r Reservation, spent Spent) error {
	err := check(sc.check(), dayOK(r.Day), inRange("tokens", spent.TokensIn, 0, maxTokens), inRange("tokens", spent.TokensOut, 0, maxTokens))
	if err != nil {
		return err
	}
	return s.ofRack(ctx, sc, spent.Host, func(t *tx) error {
		if spent.Task != "" {
			if _, err = t.task(spent.Task); err != nil {
				return err
			}
		}
		return t.settle(r, spent)
	})
}

// settle does nothing for the zero reservation. The rack and the task of spent are the tenant's.
func (t *tx) settle(r Reservation, spent Spent) error {
	if r == (Reservation{}) {
		return nil
	}
	var p Profile
	err := t.row(`SELECT max_tokens, price_in, price_out FROM profiles WHERE id = ? AND tenant = ?`, r.Profile, t.sc.Tenant).
		Scan(&p.Limits.TokensPerDay, &p.Prices.In, &p.Prices.Out)
	if err != nil {
		return err
	}
	if p.Limits.TokensPerDay > 0 || r.Tokens > 0 {
		more := spent.TokensIn + spent.TokensOut - r.Tokens
		_, err = t.exec(`UPDATE profile_days SET tokens = CASE WHEN tokens + ? > 0 THEN tokens + ? ELSE 0 END WHERE profile = ? AND day = ?`,
			more, more, r.Profile, r.Day)
		if err != nil {
			return err
		}
	}
	_, err = t.exec(`INSERT INTO accounts (tenant, day, host, task, profile, requests, tokens_in, tokens_out, cost) VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?)
		ON CONFLICT (tenant, day, host, task, profile) DO UPDATE SET requests = accounts.requests + 1,
		tokens_in = accounts.tokens_in + excluded.tokens_in, tokens_out = accounts.tokens_out + excluded.tokens_out,
		cost = accounts.cost + excluded.cost`,
		t.sc.Tenant, r.Day, spent.Host, spent.Task, r.Profile, spent.TokensIn, spent.TokensOut, p.Prices.cost(spent))
	return err
}

// cost rounds up, so that many small calls are not free. The bounds of tokens and prices keep it within 63 bits.
func (p Prices) cost(s Spent) int64 {
	const million = 1_000_000
	part := func(tokens, price int64) (whole, rest int64) {
		// tokens*price may need 62 bits; the sum of two of them more.
		n := tokens * price
		return n / million, n % million
	}
	in, inRest := part(s.TokensIn, p.In)
	out, outRest := part(s.TokensOut, p.Out)
	return in + out + (inRest+outRest+million-1)/million
}

func dayOK(day string) error {
	if _, err := time.Parse(dayForm, day); err != nil {
		return invalid("day %.40q", day)
	}
	return nil
}

// Usage lists the accounts by day, host, task and profile.
func (s *Store) Usage(ctx context.Context, sc Scope, q UsageQuery, p Page) (all []Usage, next string, err error) {
	size, err := p.size()
	mark := strings.Split(p.After, " ")
	if p.After == "" {
		mark = make([]string, 4)
	}
	if err == nil && len(mark) != 4 {
		err = invalid("page mark %.40q", p.After)
	}
	if err = check(sc.check(), err); err != nil {
		return nil, "", err
	}
	text, args := `SELECT day, host, task, profile, requests, tokens_in, tokens_out, cost FROM accounts WHERE tenant = ?
		AND (day, host, task, profile) > (?, ?, ?, ?)`, []any{sc.Tenant, mark[0], mark[1], mark[2], mark[3]}
	for _, f := range []struct{ test, value string }{
		{"day >= ?", q.From},
		{"day <= ?", q.To},
		{"host = ?", q.Host},
		{"task = ?", q.Task},
		{"profile = ?", q.Profile},
	} {
		if f.value != "" {
			text, args = text+" AND "+f.test, append(args, f.value)
		}
	}
	scan := func(r scanner) (u Usage, err error) {
		return u, r.Scan(&u.Day, &u.Host, &u.Task, &u.Profile, &u.Requests, &u.TokensIn, &u.TokensOut, &u.Cost)
	}
	err = s.read(ctx, sc, func(t *tx) error {
		all, err = list(t, scan, text+` ORDER BY day, host, task, profile LIMIT ?`, append(args, size+1)...)
		return err
	})
	all, next = cut(all, size, func(u Usage) string { return strings.Join([]string{u.Day, u.Host, u.Task, u.Profile}, " ") })
	return all, next, err
}
