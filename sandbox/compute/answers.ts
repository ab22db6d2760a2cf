import { Refusal } from "./records.ts";
import type { AnswerShape, Effect, ErrorShape, SnapshotShape } from "./weather.ts";

/** An answer before it goes out. */
export interface Answer {
  status: number;
  contentType?: string | undefined;
  body: string;
  headers?: Record<string, string>;
}

export function json(status: number, value: unknown, contentType = "application/json"): Answer {
  return { status, contentType, body: JSON.stringify(value) };
}

export function refusalAnswer(refusal: Refusal): Answer {
  return json(refusal.status, { error: { code: refusal.code, message: refusal.message } });
}

type Fields = Record<string, unknown>;

const acceptedShapes: Record<AnswerShape, (key: string, record: Fields) => Answer> = {
  record: (_, record) => json(200, record),
  wrapped: (key, record) => json(201, { [key]: record }),
  data: (_, record) => json(200, { data: record }),
  task: () => json(202, { id: "task-7f3a", type: "task", status: "PENDING" }),
  empty: () => ({ status: 204, body: "" }),
  text: () => ({ status: 200, contentType: "text/plain", body: "Accepted" }),
  html: () => ({
    status: 200,
    contentType: "text/html",
    body: "<!doctype html><html><body><h1>OK</h1></body></html>",
  }),
};

/** The answer to an accepted change, in whatever form the weather wants; the document doesn't show any. */
export function acceptedAnswer(effect: Effect, key: string, record: Fields, usual: Answer): Answer {
  return effect.answer === undefined ? usual : acceptedShapes[effect.answer](key, record);
}

/** Where a new snapshot's id stands in the answer. */
export function snapshotAnswer(effect: Effect, record: Fields): Fields {
  const { snapshot_id: id, ...others } = record;
  const shapes: Record<SnapshotShape, Fields> = {
    snapshot_id: record,
    id: { id, ...others },
    nested: { snapshot: { id, ...others } },
    data: { data: record },
    none: others,
  };
  return shapes[effect.snapshot ?? "snapshot_id"];
}

const errorWords = "Something is wrong with the service";

const errorShapes: Record<ErrorShape, (status: number, message: string) => Answer> = {
  error: (status, message) => json(status, { error: { code: "weather", message } }),
  message: (status, message) => json(status, { message }),
  detail: (status, detail) => json(status, { detail }),
  errors: (status, message) => json(status, { errors: [{ field: "body", message }] }),
  problem: (status, detail) =>
    json(
      status,
      { type: "about:blank", title: "Problem", status, detail },
      "application/problem+json",
    ),
  text: (status, body) => ({ status, contentType: "text/plain", body }),
  html: (status, message) => ({
    status,
    contentType: "text/html",
    body: `<html><head><title>${status}</title></head><body>${message}</body></html>`,
  }),
  empty: (status) => ({ status, body: "" }),
};

export function errorAnswer(
  status: number,
  shape: ErrorShape = "error",
  message = errorWords,
): Answer {
  return errorShapes[shape](status, message);
}

/** A list in the form the weather wants. `usual` is the form without weather. */
export function listAnswer(
  key: string,
  all: readonly Record<string, unknown>[],
  query: URLSearchParams,
  effect: Effect,
  usual: "wrapped" | "paged",
  whenPaged: { perPage: number; most: number },
): Answer {
  const shape = effect.list ?? usual;
  if (shape === "array") return json(200, all);
  if (shape === "wrapped") return json(200, { [key]: all });
  if (shape === "data" || shape === "items") return json(200, { [shape]: all });
  const most = effect.mostPerPage ?? whenPaged.most;
  const asked = Number(query.get("per_page") ?? Math.min(whenPaged.perPage, most));
  const page = Number(query.get("page") ?? 1);
  if (!Number.isInteger(asked) || asked < 1)
    return refusalAnswer(
      new Refusal(422, "validation_failed", "per_page must be a whole number from 1"),
    );
  if (!Number.isInteger(page) || page < 1)
    return refusalAnswer(
      new Refusal(422, "validation_failed", "page must be a whole number from 1"),
    );
  const size = Math.min(asked, most);
  const from = effect.ignoresPage ? 0 : (page - 1) * size;
  if (effect.pastLastPage !== undefined && page > 1 && from >= all.length)
    return refusalAnswer(new Refusal(effect.pastLastPage, "invalid_page", "there is no such page"));
  const part = all.slice(from, from + size);
  if (shape === "paged-without-total") return json(200, { [key]: part, page });
  const total = effect.total === "page" ? part.length : (effect.total ?? all.length);
  const perPage = effect.repeatsPerPage ? asked : size;
  return json(200, { [key]: part, total, page, per_page: perPage });
}
