import type { Compute } from "../../../src/fleet/compute/compute.ts";

const never = () => Promise.reject(new Error("not part of this test"));

/** A compute service that answers nothing; a test puts in place what it asks for. */
export const noService: Compute = {
  projects: {
    listAll: never,
    get: never,
    vms: never,
    create: never,
    update: never,
    delete: never,
  },
  vms: {
    get: never,
    metrics: never,
    attestation: never,
    start: never,
    stop: never,
    restart: never,
    resize: never,
    snapshot: never,
    restore: never,
    console: never,
  },
  onlyWhile: () => {
    throw new Error("it changes nothing");
  },
  close: () => Promise.resolve(),
};
