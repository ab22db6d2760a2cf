/**
 * Names of everything kept in Redis. One hash tag for all of them, because a move touches several keys in one script and
 * a Cluster runs a script only when its keys are in one slot.
 */
export interface Keys {
  /** `key("request", id)` is `{gatehouse}:request:<id>`. */
  (...parts: readonly (string | number)[]): string;
  /** `{gatehouse}`: what BullMQ takes as `prefix`, and the beginning of every key. */
  readonly prefix: string;
  readonly namespace: string;
}

/** Tests and installations that share a Redis use a namespace each. */
export function createKeys(namespace = "gatehouse"): Keys {
  if (!/^[\w.-]{1,80}$/.test(namespace)) throw new Error(`not a namespace: ${namespace}`);
  const prefix = `{${namespace}}`;
  const key = (...parts: readonly (string | number)[]) => [prefix, ...parts].join(":");
  return Object.assign(key, { prefix, namespace });
}
