import { createCanvas, loadImage } from "@napi-rs/canvas";

export interface Picture {
  width: number;
  height: number;
  /** How many pixels of a rectangle aren't the background; of the whole picture without one. */
  ink(x?: number, y?: number, width?: number, height?: number): number;
  /** How many pixels have (nearly) this color, `#rrggbb`. */
  count(color: string): number;
}

/** A PNG as pixels. */
export async function decode(png: Buffer): Promise<Picture> {
  const image = await loadImage(png);
  const { width: all, height: rows } = image;
  const canvas = createCanvas(all, rows);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  // RGBA, copied: the original is slow to read from
  const pixels = Buffer.from(context.getImageData(0, 0, all, rows).data);
  const background = pixels.readUIntBE(0, 3);

  return {
    width: all,
    height: rows,
    ink(x = 0, y = 0, width = all, height = rows) {
      let found = 0;
      for (let row = y; row < y + height; row += 1)
        for (let column = x; column < x + width; column += 1)
          if (!isNear(pixels, (row * all + column) * 4, background, 12)) found += 1;
      return found;
    },
    count(color) {
      const wanted = Number.parseInt(color.slice(1), 16);
      let found = 0;
      for (let at = 0; at < pixels.length; at += 4) if (isNear(pixels, at, wanted, 3)) found += 1;
      return found;
    },
  };
}

function isNear(pixels: Buffer, at: number, color: number, within: number): boolean {
  const [red, green, blue] = [color >> 16, (color >> 8) & 255, color & 255];
  return (
    Math.abs((pixels[at] ?? 0) - red) <= within &&
    Math.abs((pixels[at + 1] ?? 0) - green) <= within &&
    Math.abs((pixels[at + 2] ?? 0) - blue) <= within
  );
}
