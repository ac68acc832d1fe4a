export { createRedisBackend, type Job, Queue, Worker } from 'bullmq';
