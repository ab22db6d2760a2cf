import { fileURLToPath } from "node:url";
import { type Canvas, createCanvas, GlobalFonts, type SKRSContext2D } from "@napi-rs/canvas";
import { palette } from "./palette.ts";

export type Context = SKRSContext2D;

/** Pictures are laid out in these units and drawn twice as large, so that they are sharp on a phone. */
export const width = 600;
const sharpness = 2;

const family = "Gatehouse Inter";

/**
 * Registers the font that comes along: a machine without fonts would draw charts without any text, and say nothing.
 * Throws when a font can't be read.
 */
export function loadFonts(): void {
  for (const path of ["500Medium/Inter_500Medium.ttf", "700Bold/Inter_700Bold.ttf"]) {
    const file = fileURLToPath(import.meta.resolve(`@expo-google-fonts/inter/${path}`));
    if (!GlobalFonts.registerFromPath(file, family)) throw new Error(`can't load the font ${path}`);
  }
}

export function newCanvas(height: number): { canvas: Canvas; context: Context } {
  const canvas = createCanvas(width * sharpness, height * sharpness);
  const context = canvas.getContext("2d");
  context.scale(sharpness, sharpness);
  context.fillStyle = palette.background;
  context.fillRect(0, 0, width, height);
  return { canvas, context };
}

export interface TextStyle {
  size?: number;
  bold?: boolean;
  colour?: string;
  align?: "left" | "center" | "right";
}

function dress(context: Context, { size = 17, bold = false }: TextStyle): void {
  context.font = `${bold ? 700 : 500} ${size}px "${family}"`;
}

/** Draws text with its middle line at `y`. */
export function write(
  context: Context,
  text: string,
  x: number,
  y: number,
  style: TextStyle = {},
): void {
  dress(context, style);
  context.fillStyle = style.colour ?? palette.quietText;
  context.textAlign = style.align ?? "left";
  context.textBaseline = "middle";
  context.fillText(text, x, y);
}

export function widthOf(context: Context, text: string, style: TextStyle = {}): number {
  dress(context, style);
  return context.measureText(text).width;
}

/** The text, cut with an ellipsis where it would be wider. */
export function fitted(context: Context, text: string, most: number, style: TextStyle): string {
  if (widthOf(context, text, style) <= most) return text;
  const points = Array.from(text).slice(0, 200);
  while (points.length > 0 && widthOf(context, `${points.join("")}…`, style) > most) points.pop();
  return `${points.join("")}…`;
}
