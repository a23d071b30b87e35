package glyph

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"

	arabicregular "eliasnaur.com/font/noto/sans/arabic/regular"
	arabicbold "eliasnaur.com/font/noto/sans/arabic/semibold"
	"eliasnaur.com/font/roboto/robotomedium"
	"eliasnaur.com/font/roboto/robotoregular"
	"github.com/go-text/typesetting/font"
)

// CJKPath is where Debian's package fonts-droid-fallback puts its font.
const CJKPath = "/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf"

// CJKEnv names the environment variable that says where else a Chinese font is.
const CJKEnv = "PHONERACK_CJK_FONT"

// ErrNoCJKFont is returned where a text needs Chinese glyphs and the machine has no font for them.
var ErrNoCJKFont = errors.New("no font for Chinese: install Debian's package fonts-droid-fallback, or name a TrueType file in " + CJKEnv)

// ErrNoGlyph is returned for a character that no font has.
var ErrNoGlyph = errors.New("no font has the character")

// family is one design; its faces are Latin, Arabic and, once needed, Chinese.
type family [3]*font.Font

const (
	latin = iota
	arabic
	chinese
)

// embedded fonts are parsed once and shared: a *font.Font is read-only.
var embedded = sync.OnceValue(func() [2]family {
	return [2]family{
		{latin: mustParse(robotoregular.TTF), arabic: mustParse(arabicregular.TTF)},
		{latin: mustParse(robotomedium.TTF), arabic: mustParse(arabicbold.TTF)},
	}
})

// mustParse panics only if the binary was built with a broken font.
func mustParse(ttf []byte) *font.Font {
	f, err := font.ParseTTF(bytes.NewReader(ttf))
	if err != nil {
		panic(err)
	}
	return f.Font
}

// cjk remembers the fonts read so far by path. A failure is not remembered: the font may be installed later.
var cjk struct {
	sync.Mutex // guards fonts
	fonts      map[string]*font.Font
}

func cjkFont() (*font.Font, error) {
	path := os.Getenv(CJKEnv)
	if path == "" {
		path = CJKPath
	}
	cjk.Lock()
	defer cjk.Unlock()
	if f := cjk.fonts[path]; f != nil {
		return f, nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrNoCJKFont, err)
	}
	face, err := font.ParseTTF(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("%w (%s: %w)", ErrNoCJKFont, path, err)
	}
	if cjk.fonts == nil {
		cjk.fonts = make(map[string]*font.Font)
	}
	cjk.fonts[path] = face.Font
	return face.Font, nil
}
