const block =
  /^-----BEGIN CERTIFICATE-----\r?\n([A-Za-z0-9+/=\r\n]+?)\r?\n-----END CERTIFICATE-----(?:\r?\n)?/;

/**
 * The certificates of a PEM text, in order. Nothing else may be in the text, except for line ends
 * and the zero byte that Intel's library adds at the end; otherwise the result is undefined. Base64
 * is compared after decoding, because `Buffer.from` skips unknown characters.
 */
export function readPem(text: string, most = 4): readonly Buffer[] | undefined {
  const ders: Buffer[] = [];
  let rest = text.replace(/\0$/, "");
  while (rest !== "") {
    const [whole, inner = ""] = block.exec(rest) ?? [];
    if (whole === undefined || ders.length === most) return undefined;
    const base64 = inner.replaceAll(/[\r\n]/g, "");
    const der = Buffer.from(base64, "base64");
    if (der.toString("base64") !== base64) return undefined;
    ders.push(der);
    rest = rest.slice(whole.length).replace(/^[\r\n]+/, "");
  }
  return ders.length === 0 ? undefined : ders;
}
