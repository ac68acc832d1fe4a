export { createWorker, type Worker, type WorkerDeps } from './worker.ts';
