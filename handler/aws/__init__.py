"""Amazon's services: Secrets Manager, Systems Manager's parameters, EKS and STS. No other room calls them (SQS: `queues`)."""
