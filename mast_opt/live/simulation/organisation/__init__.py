"""An organisation in time: teams whose jobs read mostly their own data, as a trace that is generated from a seed."""
