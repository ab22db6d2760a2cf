/** Writes DER: what the verifier's reader reads, written by code of its own. */
export function tlv(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  const size = content.length;
  const head =
    size < 0x80
      ? [size]
      : size < 0x100
        ? [0x81, size]
        : size < 0x10000
          ? [0x82, size >> 8, size & 0xff]
          : [0x83, size >> 16, (size >> 8) & 0xff, size & 0xff];
  return Buffer.concat([Buffer.from([tag, ...head]), content]);
}

export const sequence = (...parts: readonly Buffer[]): Buffer => tlv(0x30, ...parts);
export const octets = (bytes: Buffer): Buffer => tlv(0x04, bytes);
export const bits = (bytes: Buffer): Buffer => tlv(0x03, Buffer.from([0]), bytes);
export const yes = tlv(0x01, Buffer.from([0xff]));

/** A whole number of up to six bytes, or the bytes of a longer one. */
export function integer(value: number | Buffer): Buffer {
  const hex = typeof value === "number" ? value.toString(16) : value.toString("hex");
  const even = hex.length % 2 === 0 ? hex : `0${hex}`;
  const bare = even.replace(/^(00)+(?=..)/, "");
  return tlv(0x02, Buffer.from(parseInt(bare.slice(0, 2), 16) >= 0x80 ? `00${bare}` : bare, "hex"));
}

export function oid(dotted: string): Buffer {
  const [a = 0, b = 0, ...rest] = dotted.split(".").map(Number);
  const arc = (value: number) => {
    const groups = [value % 128];
    for (let left = Math.floor(value / 128); left > 0; left = Math.floor(left / 128))
      groups.unshift((left % 128) + 128);
    return groups;
  };
  return tlv(0x06, Buffer.from([a * 40 + b, ...rest.flatMap(arc)]));
}

/** UTCTime up to 2049, GeneralizedTime after it (RFC 5280). */
export function time(at: number): Buffer {
  const digits = `${new Date(at).toISOString().slice(0, 19).replaceAll(/[-T:]/g, "")}Z`;
  const isShort = Number(digits.slice(0, 4)) < 2050;
  return tlv(isShort ? 0x17 : 0x18, Buffer.from(isShort ? digits.slice(2) : digits));
}

/** A distinguished name of one organization and one common name. */
export function distinguished(commonName: string, organization = "Sandbox"): Buffer {
  const attribute = (type: string, text: string) =>
    tlv(0x31, sequence(oid(type), tlv(0x0c, Buffer.from(text))));
  return sequence(attribute("2.5.4.10", organization), attribute("2.5.4.3", commonName));
}

export function extension(dotted: string, value: Buffer, isCritical = false): Buffer {
  return sequence(oid(dotted), ...(isCritical ? [yes] : []), octets(value));
}

export const pem = (...certificates: readonly Buffer[]): string =>
  certificates
    .map((der) => {
      const lines = der.toString("base64").replaceAll(/(.{64})(?=.)/g, "$1\n");
      return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
    })
    .join("");
