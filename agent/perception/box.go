package perception

import "image"

// box is a rectangle in pixels: like image.Rectangle in half the memory.
type box struct{ x0, y0, x1, y1 int32 }

func (b box) w() int32 { return b.x1 - b.x0 }
func (b box) h() int32 { return b.y1 - b.y0 }

func (b box) area() int64 { return int64(b.w()) * int64(b.h()) }

func (b box) empty() bool { return b.x0 >= b.x1 || b.y0 >= b.y1 }

// in reports whether b lies in c.
func (b box) in(c box) bool { return b.x0 >= c.x0 && b.x1 <= c.x1 && b.y0 >= c.y0 && b.y1 <= c.y1 }

// middle is the pixel in the middle of b.
func (b box) middle() box {
	x, y := (b.x0+b.x1)/2, (b.y0+b.y1)/2
	return box{x, y, x + 1, y + 1}
}

func (b box) intersect(c box) box {
	return box{max(b.x0, c.x0), max(b.y0, c.y0), min(b.x1, c.x1), min(b.y1, c.y1)}
}

func (b box) union(c box) box {
	switch {
	case b.empty():
		return c
	case c.empty():
		return b
	}
	return box{min(b.x0, c.x0), min(b.y0, c.y0), max(b.x1, c.x1), max(b.y1, c.y1)}
}

func (b box) rectangle() image.Rectangle {
	return image.Rectangle{Min: image.Pt(int(b.x0), int(b.y0)), Max: image.Pt(int(b.x1), int(b.y1))}
}

func boxOf(r image.Rectangle) box {
	limit := image.Rect(-maxCoord, -maxCoord, maxCoord, maxCoord)
	r = r.Intersect(limit)
	return box{int32(r.Min.X), int32(r.Min.Y), int32(r.Max.X), int32(r.Max.Y)}
}
