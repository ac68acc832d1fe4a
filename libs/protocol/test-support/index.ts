export * from './fuzz.ts';
export * from './sample-result.ts';
