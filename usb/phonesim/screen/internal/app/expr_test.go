package app

import (
	"strings"
	"testing"
)

func TestExpressions(t *testing.T) {
	list := &List{Items: []*Item{
		{Fields: map[string]any{"name": Text{"en": "Kettle", "ar": "غلاية", "zh": "水壶"}, "price": 2.5, "qty": 2.0}},
		{Fields: map[string]any{"name": Text{"en": "Mug", "ar": "كوب", "zh": "杯"}, "price": 4.0, "qty": 1.0}},
	}}
	scope := NewScope(new(App), "zh", map[string]any{"n": 7.0, "s": " Ana ", "yes": true, "list": list, "item": list.Items[0]})
	for src, want := range map[string]string{
		"1 + 2 * 3 - 4 / 2":                 "5",
		"(1 + 2) * 3 % 5":                   "4",
		"-n + 1":                            "-6",
		"n / 0":                             "0",
		"'a' + 1":                           "a1",
		"n == 7 and not (n < 7) or missing": "true",
		"n != '7'":                          "false",
		"n >= 8 or n <= 6":                  "false",
		"if(yes, 'on', 'off')":              "on",
		"item.name":                         "水壶",
		"en(item.name)":                     "Kettle",
		"item.missing.field":                "",
		"count(list)":                       "2",
		"count(list, item.price > 3)":       "1",
		"sum(list, item.price * item.qty)":  "9",
		"join(list, en(item.name) + ' x' + item.qty)": "Kettle x2, Mug x1",
		"contains(item.name, ' KETT')":                "true",
		"contains(item.name, 'غلا')":                  "true",
		"contains(item.name, 'mug')":                  "false",
		"money(2.5)":                                  "2.50",
		"trim(s)":                                     "Ana",
		"length(item.name)":                           "2",
		"initial(trim(s))":                            "A",
		"item == item":                                "true",
	} {
		e := Expr{src: src}
		if err := e.parse(); err != nil {
			t.Error(err)
			continue
		}
		if got := String(e.Eval(scope), "zh"); got != want {
			t.Errorf("%s is %q, want %q", src, got, want)
		}
	}
}

func TestExpressionsThatAreWrong(t *testing.T) {
	for _, src := range []string{"1 +", "(1", "'open", "a..b", "f(1)", "count()", "1 2", "a = b", "#", "not", strings.Repeat("(", 500), strings.Repeat("-", 500) + "1"} {
		e := Expr{src: src}
		if err := e.parse(); err == nil {
			t.Errorf("%q is accepted", src)
		}
	}
}

func FuzzExpression(f *testing.F) {
	f.Add("if(a.b == 'c', -1.5 * (2 + count(l, item.x)), @key)")
	f.Fuzz(func(t *testing.T, src string) {
		e := Expr{src: src}
		if e.parse() == nil {
			e.Eval(NewScope(new(App), "en", nil))
		}
	})
}

func TestPath(t *testing.T) {
	got, err := ParsePath("M1 2l3-4H.5v1q1,1 2 2C1 1 2 2 3 3z m1 1 2 2")
	if err != nil {
		t.Fatal(err)
	}
	var ops []byte
	for _, s := range got {
		ops = append(ops, s.Op)
	}
	if string(ops) != "MLLLQCZML" {
		t.Errorf("path is %s", ops)
	}
	if p := got[1].P[0]; p != [2]float64{4, -2} {
		t.Errorf("relative line leads to %v", p)
	}
	if p := got[8].P[0]; p != [2]float64{4, 5} {
		t.Errorf("after closing, the pen moves to %v", p)
	}
	for _, src := range []string{"L1 1", "M1", "M1 1 A1", "M1 1 Z 3", "M1 1 L1 x"} {
		if _, err := ParsePath(src); err == nil {
			t.Errorf("%q is accepted", src)
		}
	}
}
