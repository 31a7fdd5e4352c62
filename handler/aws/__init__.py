"""Amazon's services: Secrets Manager, Systems Manager's parameters, EKS and STS. Only this room speaks to them (queues: `queues`)."""
