// Package qrcode draws QR codes (ISO/IEC 18004) as paths of SVG: a page needs no picture for them, and holds many.
package qrcode
