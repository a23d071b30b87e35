package board

import (
	"fmt"

	"github.com/pelletier/go-toml/v2/unstable"
)

// A Position is a place in a file, both from 1.
type Position struct{ Line, Column int }

// Positions says where each key of a TOML file stands, by names such as "name", "rack.id", "slot[2]" and
// "slot[2].path". The decoder drops places once a value is of the right type; people need them.
func Positions(data []byte) map[string]Position {
	at := map[string]Position{}
	var p unstable.Parser
	p.Reset(data)
	table, counts := "", map[string]int{}
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.ArrayTable:
			name, where := key(&p, e)
			table = fmt.Sprintf("%s[%d].", name, counts[name])
			at[fmt.Sprintf("%s[%d]", name, counts[name])] = where
			if counts[name] == 0 {
				at[name] = where
			}
			counts[name]++
		case unstable.Table:
			name, where := key(&p, e)
			table = name + "."
			at[name] = where
		case unstable.KeyValue:
			name, where := key(&p, e)
			at[table+name] = where
		}
	}
	return at
}

// key gives an expression's dotted key and where it begins.
func key(p *unstable.Parser, e *unstable.Node) (name string, where Position) {
	for it := e.Key(); it.Next(); {
		n := it.Node()
		if name != "" {
			name += "."
		} else {
			start := p.Shape(n.Raw).Start
			where = Position{start.Line, start.Column}
		}
		name += string(n.Data)
	}
	return name, where
}
