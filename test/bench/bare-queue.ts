import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";

// The least that two BullMQ queues can be: what comes is done at once. A job with a number is answered with a line.
const options = { maxRetriesPerRequest: null };
const connection = new Redis(process.env["REDIS_URL"] ?? "", options);
const names = ["bare-requests", "bare-watches"];
const queues = names.map((name) => new Queue(name, { connection }));
const workers = names.map(
  (name) => new Worker(name, async () => undefined, { connection, concurrency: 20 }),
);
await Promise.all([...queues, ...workers].map((one) => one.waitUntilReady()));
process.stdout.write("ready 0\n");
