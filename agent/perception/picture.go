package perception

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/jpeg"

	"golang.org/x/image/draw"
)

// ErrNoImage means that there is no picture to encode.
var ErrNoImage = errors.New("no image")

// EncodeJPEG encodes img with a quality of 1 to 100, scaled down so that its
// longer side is at most maxEdge pixels; maxEdge 0 keeps the size.
func EncodeJPEG(img image.Image, maxEdge, quality int) ([]byte, error) {
	if rgba, ok := img.(*image.RGBA); img == nil || ok && rgba == nil || img.Bounds().Empty() {
		return nil, ErrNoImage
	}
	if quality < 1 || quality > 100 || maxEdge < 0 {
		return nil, fmt.Errorf("encode JPEG: quality %d, edge %d: out of range", quality, maxEdge)
	}
	size := img.Bounds().Size()
	if long := max(size.X, size.Y); maxEdge > 0 && long > maxEdge {
		small := image.NewRGBA(image.Rect(0, 0, max(1, size.X*maxEdge/long), max(1, size.Y*maxEdge/long)))
		draw.ApproxBiLinear.Scale(small, small.Bounds(), img, img.Bounds(), draw.Src, nil)
		img = small
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: quality}); err != nil {
		return nil, fmt.Errorf("encode JPEG: %w", err)
	}
	return b.Bytes(), nil
}
