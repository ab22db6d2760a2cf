/**
 * What stands in Intel's JSON (TCB info of version 3, enclave identity of version 2), read field by field: what is signed
 * may still be of a form that this code doesn't know. Hex becomes lower case.
 * https://api.portal.trustedservices.intel.com/content/documentation.html
 */
export type TcbInfo = NonNullable<ReturnType<typeof readTcbInfo>>;
export type QeIdentity = NonNullable<ReturnType<typeof readQeIdentity>>;
/** `date` is when Intel set this bar. */
export type Level = NonNullable<ReturnType<typeof readLevel>>;

type Fields = Record<string, unknown>;

const fieldsOf = (value: unknown): Fields | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Fields)
    : undefined;
const textOf = (value: unknown) => (typeof value === "string" ? value : undefined);
const countOf = (value: unknown) =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;

function hexOf(value: unknown, bytes: number): string | undefined {
  const text = textOf(value)?.toLowerCase();
  return text?.length === bytes * 2 && /^[0-9a-f]*$/.test(text) ? text : undefined;
}

const bytesOf = (value: unknown, bytes: number) => {
  const hex = hexOf(value, bytes);
  return hex === undefined ? undefined : Buffer.from(hex, "hex");
};

/** All of them, or undefined: a level that can't be read must not be skipped, the one below it would count. */
function each<T>(
  value: unknown,
  read: (fields: Fields) => T | undefined,
): readonly T[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const all = value.map((one: unknown) => {
    const fields = fieldsOf(one);
    return fields && read(fields);
  });
  const known = all.filter((one) => one !== undefined);
  return known.length === all.length ? known : undefined;
}

type Whole<T> = { [K in keyof T]: Exclude<T[K], undefined> };

/** The object when each of its fields is there. */
function whole<T extends object>(fields: T): Whole<T> | undefined {
  return Object.values(fields).every((value) => value !== undefined)
    ? (fields as Whole<T>)
    : undefined;
}

function readLevel(fields: Fields) {
  return whole({
    status: textOf(fields["tcbStatus"]),
    date: textOf(fields["tcbDate"]),
    advisories: readAdvisories(fields["advisoryIDs"] ?? []),
  });
}

function readAdvisories(ids: unknown): readonly string[] | undefined {
  return Array.isArray(ids) && ids.every((id) => typeof id === "string") ? ids : undefined;
}

function readSvnLevel(fields: Fields) {
  const level = readLevel(fields);
  return level && whole({ ...level, svn: countOf(fieldsOf(fields["tcb"])?.["isvsvn"]) });
}

function readPlatformLevel(fields: Fields) {
  const [level, tcb] = [readLevel(fields), fieldsOf(fields["tcb"])];
  const svns = (name: string) => {
    const all = each(tcb?.[name], ({ svn }) => countOf(svn));
    return all?.length === 16 ? all : undefined;
  };
  return (
    level &&
    whole({
      ...level,
      sgx: svns("sgxtcbcomponents"),
      tdx: svns("tdxtcbcomponents"),
      pceSvn: countOf(tcb?.["pcesvn"]),
    })
  );
}

const readModule = (fields: Fields | undefined) =>
  fields &&
  whole({ mrSigner: hexOf(fields["mrsigner"], 48), attributes: hexOf(fields["attributes"], 8) });

export function readTcbInfo(value: unknown) {
  const fields = fieldsOf(value);
  if (!fields) return undefined;
  return whole({
    issueDate: textOf(fields["issueDate"]),
    nextUpdate: textOf(fields["nextUpdate"]),
    fmspc: hexOf(fields["fmspc"], 6),
    pceId: hexOf(fields["pceId"], 2),
    evaluation: countOf(fields["tcbEvaluationDataNumber"]),
    tdxModule: readModule(fieldsOf(fields["tdxModule"])),
    // Not there for platforms with the first module alone
    moduleIdentities: each(fields["tdxModuleIdentities"] ?? [], (one) => {
      const its = readModule(one);
      const levels = each(one["tcbLevels"], readSvnLevel);
      return its && whole({ ...its, id: textOf(one["id"])?.toUpperCase(), levels });
    }),
    levels: each(fields["tcbLevels"], readPlatformLevel),
  });
}

export function readQeIdentity(value: unknown) {
  const fields = fieldsOf(value);
  if (!fields) return undefined;
  return whole({
    issueDate: textOf(fields["issueDate"]),
    nextUpdate: textOf(fields["nextUpdate"]),
    evaluation: countOf(fields["tcbEvaluationDataNumber"]),
    miscSelect: bytesOf(fields["miscselect"], 4),
    miscSelectMask: bytesOf(fields["miscselectMask"], 4),
    attributes: bytesOf(fields["attributes"], 16),
    attributesMask: bytesOf(fields["attributesMask"], 16),
    mrSigner: hexOf(fields["mrsigner"], 32),
    productId: countOf(fields["isvprodid"]),
    levels: each(fields["tcbLevels"], readSvnLevel),
  });
}
