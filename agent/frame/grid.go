package frame

import (
	"fmt"
	"image"
	"image/color"
	"strconv"
)

// maxCells bounds the columns and the rows of a grid.
const maxCells = 50

// Grid returns the picture as a JPEG with a grid over it. Columns are labelled A,
// B and so on, after Z AA, at the top; rows 1, 2 and so on at the left.
func (p *Picture) Grid(columns, rows int) ([]byte, error) {
	if columns < 1 || columns > maxCells || rows < 1 || rows > maxCells {
		return nil, fmt.Errorf("a grid of %dx%d cells is out of range", columns, rows)
	}
	c, err := p.canvas()
	if err != nil {
		return nil, fmt.Errorf("draw grid: %w", err)
	}
	for i := 1; i < columns; i++ {
		x := i * p.Size.X / columns
		c.line(image.Rect(x, 0, x+1, p.Size.Y))
	}
	for i := 1; i < rows; i++ {
		y := i * p.Size.Y / rows
		c.line(image.Rect(0, y, p.Size.X, y+1))
	}
	for i := range columns {
		c.cellLabel(columnName(i), image.Pt((2*i+1)*p.Size.X/(2*columns), 0))
	}
	for i := range rows {
		c.cellLabel(strconv.Itoa(i+1), image.Pt(0, (2*i+1)*p.Size.Y/(2*rows)))
	}
	return c.encode()
}

// columnName is A to Z, then AA and so on, as in a spreadsheet.
func columnName(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return columnName(i/26-1) + columnName(i%26)
}

// cellLabel draws a label around a point, as near as it fits.
func (c *canvas) cellLabel(s string, at image.Point) {
	l := labelOf(s)
	min := at.Sub(l.size.Div(2))
	c.label(inside(image.Rectangle{Min: min, Max: min.Add(l.size)}, c.img.Rect), l, color.RGBA{0x20, 0x20, 0x20, 0xFF})
}

// dash is the length of a line's dashes, in pixels.
const dash = 4

// line fills r, a pixel wide, with black and white dashes: one of them shows on
// any background.
func (c *canvas) line(r image.Rectangle) {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			v := uint8(0)
			if (x+y)/dash%2 == 0 {
				v = 0xFF
			}
			c.img.SetRGBA(x, y, color.RGBA{v, v, v, 0xFF})
		}
	}
}
