export { Queue } from 'bullmq';
